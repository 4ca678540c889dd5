"""What proposing and releasing need: the readers' desk, the proposals, and a line for each step."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from scan_pipeline.agents.addressing import places
from scan_pipeline.agents.admitted import admitted_record
from scan_pipeline.agents.audit_log import AuditLog, Entry
from scan_pipeline.agents.desk import Desk, Standing
from scan_pipeline.agents.execution import Executor
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.policy import Policy
from scan_pipeline.agents.proposals import Proposal, Proposals, ProposalState, ReleaseLock
from scan_pipeline.agents.viewing import PLACE
from scan_pipeline.core.canonical import parse_exact
from scan_pipeline.core.errors import ContractError, EvidenceError, GateClosedError


class ActionDesk:
    """Everything that an operation on proposals needs.

    Args:
        reading: where readers are answered.
        log: where each step leaves a line.
    """

    def __init__(self, reading: Desk, *, log: AuditLog) -> None:
        folder: Path = reading.workspace.project.agents
        self.reading, self._log = reading, log
        self.proposals = Proposals(folder / "proposals.sqlite")
        self.lock = ReleaseLock(folder / "releasing.lock")

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.reading.workspace.clock().timestamp()

    def key_at(self, standing: Standing, place: tuple[int, int]) -> str:
        """Return the key of the record at a place of the walk, canonical JSON."""
        page, position = PLACE
        at_place = (pl.col(page) == place[0]) & (pl.col(position) == place[1])
        found = standing.grounded.frame.filter(at_place).select("_key").collect()
        return str(found["_key"][0])

    def request(self, policy: Policy, proposal: Proposal) -> Executor:
        """Return what talks to the source about a proposal's record; nothing is sent yet.

        Raises:
            ReaderError: the record cannot be read from its page, or the action's address does not
                name the scan's whole key, and so might mean another record.
        """
        action = policy.actions[proposal.action]
        collection = self.reading.collection(proposal.scan)
        names = collection.scan.contract.key
        if set(places(action.request.url)) != set(names):
            raise ReaderError(
                "ask_for_access",
                "policy_misfit",
                f"the address of {proposal.action} does not name the key of {proposal.scan}; "
                f"expected {', '.join(f'{{{name}}}' for name in names)} in it, each once",
            )
        values = parse_exact(proposal.key.encode())
        if not isinstance(values, list):
            raise ReaderError("stop", "key_unfit", "the key is no list of fields")
        key = {
            name: value
            for name, value in zip(names, values, strict=True)
            if isinstance(value, str | int)
        }
        if len(key) != len(names):
            raise ReaderError("stop", "key_unfit", "a key field is neither text nor integer")
        admitted = admitted_record(
            collection,
            workspace=self.reading.workspace,
            generation=proposal.generation,
            page=proposal.page,
            position=proposal.position,
            version=proposal.version,
        )
        return Executor(
            action,
            key=key,
            admitted=admitted,
            workspace=self.reading.workspace,
        )

    def settle(self, *, held: bool = False) -> None:
        """Say of proposals what is so by now, whoever noticed: left halfway, or without ground.

        One that is found in `releasing` while nobody holds the lock was left there by a release
        that ended before it could say how; it may have been sent.

        Args:
            held: whether the caller holds the lock.
        """
        if held:
            self._settle_left()
        else:
            with self.lock.held(wait=0) as free:
                if free:
                    self._settle_left()
        for each in self.proposals.all():
            if each.state == "proposed":
                fallen = self._fallen(each)
                if fallen is not None:
                    self.take(each, "withdrawn", leaves="proposed", reason=fallen, by=None)

    def withdraw(self, proposal: Proposal, *, leaves: Sequence[ProposalState], by: str) -> Proposal:
        """Withdraw a proposal.

        Raises:
            ReaderError: it is past that.
        """
        if proposal.state in leaves and self.take(
            proposal, "withdrawn", leaves=proposal.state, reason=f"withdrawn by {by}", by=by
        ):
            return self.again(proposal)
        now = self.again(proposal)
        raise ReaderError(
            "stop",
            "not_open",
            f"the proposal is {now.state} ({now.reason}); expected {' or '.join(leaves)}",
        )

    def take(
        self,
        proposal: Proposal,
        to: ProposalState,
        *,
        leaves: ProposalState,
        reason: str,
        by: str | None,
    ) -> bool:
        """Take a step and leave a line of it; return whether it was there to be taken."""
        taken = self.proposals.step(
            proposal.name,
            leaves=leaves,
            to=to,
            reason=reason,
            now=self.now,
            by=by if to == "releasing" else None,
        )
        if taken:
            self.note(proposal, f"action_{to}", by=by)
        return taken

    def again(self, proposal: Proposal) -> Proposal:
        """Return a proposal as it is now."""
        return self.proposals.find(proposal.name) or proposal

    def note(self, proposal: Proposal, step: str, *, by: str | None, state: str = "taken") -> None:
        """Leave a line of one step: who, which, and how it ended; no values and no reasons."""
        self._log.write(
            Entry(
                at=self.reading.workspace.clock(),
                principal=by or "policy",
                tenant=proposal.tenant,
                operation=step,
                scan=proposal.scan,
                generation=proposal.generation,
                handle=proposal.handle,
                action=proposal.action,
                proposal=proposal.name,
                state=state,
            )
        )

    def _settle_left(self) -> None:
        for each in self.proposals.all():
            if each.state == "releasing":
                self.take(
                    each,
                    "unknown",
                    leaves="releasing",
                    reason="its release ended before it could say how; look at the source",
                    by=None,
                )

    def _fallen(self, proposal: Proposal) -> str | None:
        """Say why a proposal's receipt does not stand, None where it does."""
        try:
            collection = self.reading.collection(proposal.scan)
            stored = collection.receipt(proposal.generation)
            if stored.receipt_id != proposal.receipt_id:
                return "its generation has another receipt now"
            if collection.is_superseded(stored):
                return "its receipt was superseded"
        except (GateClosedError, EvidenceError) as error:
            return f"its receipt does not stand ({type(error).__name__})"
        except ContractError:
            return (
                None  # the project has no such scan at present: release refuses, this cannot tell
            )
        return None
