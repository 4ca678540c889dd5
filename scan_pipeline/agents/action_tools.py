"""The tools by which an agent proposes; what it proposes happens elsewhere, once it may."""

from typing import Annotated, Final

from mcp_types import CallToolResult, ToolAnnotations

from scan_pipeline.agents.action_desk import ActionDesk
from scan_pipeline.agents.answering import Answering
from scan_pipeline.agents.desk import size_of
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.proposing import (
    ProposalAnswer,
    ProposalList,
    counted,
    list_proposals,
    propose_action,
    told,
    withdraw_proposal,
)
from scan_pipeline.agents.readers_server import ReadersServer
from scan_pipeline.agents.releasing import release_automatic

ACTS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
KEEPS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def add_action_tools(server: ReadersServer, desk: ActionDesk, *, answer: Answering) -> None:
    """Add the tools to a server.

    Args:
        server: the server.
        desk: what every operation needs.
        answer: answers one call.
    """

    @server.reader(name="propose_action", annotations=ACTS)
    def _propose_action(
        handle: str, row: int, action: str
    ) -> Annotated[CallToolResult, ProposalAnswer]:
        """Propose an action on one row that you have read in full; state says what came of it.

        proposed means that nothing was done: waits_for says what is missing, mostly a person, or a
        verdict on every row that matches. Never say that it was done unless state is done.
        """
        return answer(
            "propose_action",
            lambda who: counted(
                desk, who, lambda: _proposed(desk, who, handle=handle, row=row, action=action)
            ),
            handle=handle,
        )

    @server.reader(name="list_proposals", annotations=KEEPS)
    def _list_proposals(after: str | None = None) -> Annotated[CallToolResult, ProposalList]:
        """List your proposals and how far each is, oldest first; next_after leads on."""
        return answer(
            "list_proposals",
            lambda who: counted(desk, who, lambda: list_proposals(desk, who, after=after)),
        )

    @server.reader(name="withdraw_proposal", annotations=KEEPS)
    def _withdraw_proposal(proposal: str) -> Annotated[CallToolResult, ProposalAnswer]:
        """Withdraw a proposal of yours that was not released."""
        return answer(
            "withdraw_proposal",
            lambda who: _withdrawn(desk, who, proposal=proposal),
        )

    @server.reader(name="release_proposal", annotations=ACTS)
    def _release_proposal(proposal: str) -> Annotated[CallToolResult, ProposalAnswer]:
        """Release a proposal of yours where the policy wants no person, once all is accounted for.

        unknown means that it was sent and that nobody knows how it ended: stop, and tell a person.
        """
        return answer(
            "release_proposal",
            lambda who: counted(
                desk, who, lambda: told(desk, release_automatic(desk, who, proposal=proposal))
            ),
        )


def _withdrawn(desk: ActionDesk, principal: str, *, proposal: str) -> ProposalAnswer:
    """Withdraw, whatever is left of the run: nobody is to be kept from taking something back."""
    answered = told(desk, withdraw_proposal(desk, principal, proposal=proposal))
    desk.reading.budget(desk.reading.policy(), principal).spend(size=size_of(answered))
    return answered


def _proposed(
    desk: ActionDesk, principal: str, *, handle: str, row: int, action: str
) -> ProposalAnswer:
    """Propose; where the policy wants no person, release at once if nothing is missing."""
    kept = propose_action(desk, principal, handle=handle, row=row, action=action)
    if desk.reading.policy().actions[action].release == "person":
        return told(
            desk, kept, waits_for="a person releases it, once all that matches is accounted for"
        )
    try:
        return told(desk, release_automatic(desk, principal, proposal=kept.name))
    except ReaderError as error:
        return told(desk, desk.again(kept), waits_for=f"{error} ({error.code})")
