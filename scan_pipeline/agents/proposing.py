"""Propose an action about one record that was read in full; nothing is sent by that."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from scan_pipeline.agents.action_desk import ActionDesk
from scan_pipeline.agents.actions import Action
from scan_pipeline.agents.answers import Represents, answer
from scan_pipeline.agents.desk import Desk, Standing, size_of
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import new_name
from scan_pipeline.agents.policy import Policy
from scan_pipeline.agents.proposals import (
    AlreadyProposedError,
    Proposal,
    ProposalState,
    new_idempotency_key,
)

T = TypeVar("T")

_SLACK: Final = 96
"""Bytes by which what stands around the proposals may grow: a name, and longer figures."""


@answer
class ProposalAnswer:
    """One proposal: what it is about, and how far it is.

    Attributes:
        proposal: its name.
        action: what would be done.
        scan: of which scan.
        scan_generation: the generation that the record was read in.
        receipt_id: that generation's receipt.
        handle: the question under which it was read.
        row: its row there.
        record_version: as `read_record` told it: a record with another one is not acted upon.
        state: how far it is; `unknown` was sent and is never sent again.
        reason: why it is there.
        waits_for: what keeps it from being released now; None where that was not asked.
        proposed_at: UTC.
        changed_at: UTC.
    """

    represents: Represents
    statement: str
    proposal: str
    action: str
    scan: str
    scan_generation: str
    receipt_id: str
    handle: str
    row: int
    record_version: str
    state: ProposalState
    reason: str
    waits_for: str | None
    proposed_at: str
    changed_at: str


@answer
class ProposalList:
    """Proposals of one principal, oldest first; as many as an answer may hold.

    Attributes:
        total: how many there are.
        next_after: for the next of them, as `after`; None where none follow.
    """

    represents: Represents
    statement: str
    proposals: list[ProposalAnswer]
    total: int
    next_after: str | None


def propose_action(
    desk: ActionDesk, principal: str, *, handle: str, row: int, action: str
) -> Proposal:
    """Keep a proposal to do something about one record.

    Args:
        desk: what every operation needs.
        principal: who asks, by the connection.
        handle: the question under which the record was read.
        row: its number there.
        action: the action's name in the policy.

    Raises:
        ReaderError: as for a page; or the action is not granted, the record was not read in full
            under this handle, or the action is under way or done for this version of it.
    """
    policy = desk.reading.policy()
    standing = desk.reading.standing(policy, principal, handle)
    granted = granted_action(policy, principal, action, scan=standing.handle.scan)
    version = desk.reading.ledger.full_read(handle, row=row)
    if version is None:
        raise ReaderError(
            "narrow",
            "not_read_in_full",
            f"row {row:,} was not read in full under this handle; read_record it first",
        )
    place = read_row(desk.reading, standing, row, version=version)
    now = desk.now
    proposal = Proposal(
        name=new_name("pr"),
        action=action,
        action_digest=granted.digest(),
        scan=standing.handle.scan,
        generation=standing.handle.generation,
        receipt_id=standing.handle.receipt_id,
        handle=handle,
        row=row,
        page=place[0],
        position=place[1],
        key=desk.key_at(standing, place),
        version=version,
        principal=principal,
        tenant=standing.handle.tenant,
        idempotency_key=new_idempotency_key(),
        state="proposed",
        reason="proposed",
        proposed_at=now,
        changed_at=now,
    )
    desk.request(policy, proposal).call({}, idempotency_key=proposal.idempotency_key)
    try:
        desk.proposals.add(proposal)
    except AlreadyProposedError as error:
        raise ReaderError("stop", "already_proposed", str(error)) from error
    desk.note(proposal, "propose_action", by=principal)
    return proposal


def list_proposals(desk: ActionDesk, principal: str, *, after: str | None = None) -> ProposalList:
    """Return a principal's own proposals, those whose ground fell withdrawn by that.

    Args:
        desk: what every operation needs.
        principal: who asks, by the connection.
        after: the proposal that they follow; None from the first.

    Raises:
        ReaderError: there is no such proposal of theirs.
    """
    desk.settle()
    own = desk.proposals.all(principal=principal)
    begin = 0
    if after is not None:
        places = [number for number, each in enumerate(own, start=1) if each.name == after]
        if not places:
            raise unknown_proposal()
        begin = places[0]
    open_ones = sum(each.state == "proposed" for each in own)

    def listed(shown: list[ProposalAnswer]) -> ProposalList:
        more = begin + len(shown) < len(own)
        return ProposalList(
            represents="proposal",
            statement=f"{len(shown):,} of {len(own):,} proposals of yours; {open_ones:,} of all "
            "are not released.",
            proposals=shown,
            total=len(own),
            next_after=shown[-1].proposal if more and shown else None,
        )

    room = desk.reading.policy().limits.answer_bytes - size_of(listed([])) - _SLACK
    shown = list[ProposalAnswer]()
    for each in own[begin:]:
        one = told(desk, each)
        room -= size_of(one) + 1
        if room < 0 and shown:
            break
        shown.append(one)
    return listed(shown)


def withdraw_proposal(desk: ActionDesk, principal: str, *, proposal: str) -> Proposal:
    """Withdraw a proposal of one's own that was not released.

    Raises:
        ReaderError: it is not this principal's, or was released, withdrawn or found stale before.
    """
    desk.settle()
    found = desk.proposals.find(proposal)
    if found is None or found.principal != principal:
        raise unknown_proposal()
    return desk.withdraw(found, leaves=("proposed",), by=principal)


def granted_action(policy: Policy, principal: str, name: str, *, scan: str) -> Action:
    """Return an action that a principal may propose about a scan's records.

    Raises:
        ReaderError: not granted; one wording for that and for what is not there.
    """
    action = policy.actions.get(name)
    one = policy.principals.get(principal)
    granted = action is not None and action.scan == scan and principal in action.proposers
    if action is None or not granted or one is None or one.revoked:
        raise ReaderError(
            "ask_for_access",
            "action_not_granted",
            f"{principal} may propose no such action on {scan}; ask whoever keeps the policy",
        )
    return action


def read_row(desk: Desk, standing: Standing, row: int, *, version: str) -> tuple[int, int]:
    """Return the place in the walk of a row that was read in full.

    Raises:
        ReaderError: another record stands there now.
    """
    (found,) = desk.rows(standing, first=row, count=1)
    if found.version != version:
        raise ReaderError(
            "restart", "row_changed", f"row {row:,} is another record now; open the query again"
        )
    return found.page, found.position


def counted(desk: ActionDesk, principal: str, work: Callable[[], T]) -> T:
    """Do what an answer asks for, counted in the principal's run before the work.

    Raises:
        ReaderError: an answer does not fit into what is left of the run; nothing was done.
    """
    policy = desk.reading.policy()
    budget = desk.reading.budget(policy, principal)
    with budget.taking(size=policy.limits.answer_bytes) as taken:
        answered = work()
        taken.used = size_of(answered)
    return answered


def told(desk: ActionDesk, proposal: Proposal, *, waits_for: str | None = None) -> ProposalAnswer:
    """Return a proposal as its proposer is told of it.

    Without the key, which a view may hide, and without the digest of the whole record, which would
    confirm a guess of a hidden field.
    """
    return ProposalAnswer(
        represents="proposal",
        statement=f"{proposal.action} on row {proposal.row:,} of {proposal.scan} "
        f"{proposal.generation}: {proposal.state} ({proposal.reason}).",
        proposal=proposal.name,
        action=proposal.action,
        scan=proposal.scan,
        scan_generation=proposal.generation,
        receipt_id=proposal.receipt_id,
        handle=proposal.handle,
        row=proposal.row,
        record_version=desk.reading.keyed(proposal.scan, proposal.version),
        state=proposal.state,
        reason=proposal.reason,
        waits_for=waits_for,
        proposed_at=moment(proposal.proposed_at),
        changed_at=moment(proposal.changed_at),
    )


def moment(seconds: float) -> str:
    """Return a time of the ledger's as text, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def unknown_proposal() -> ReaderError:
    """Say the same of another's proposal and of one that never was."""
    return ReaderError("stop", "proposal_unknown", "no such proposal of yours; list_proposals")
