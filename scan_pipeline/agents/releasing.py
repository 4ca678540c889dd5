"""Release: what a proposal must meet, all of it asked anew, and then one request.

In this order: nobody else releases; the proposal is open; who releases may; who proposed still may
and still sees that row; the receipt stands; the version that was read in full is the one that is
staged; the population is accounted for; the source still has that version. Only then is `releasing`
written, the request sent, and its end written. A process that dies in between leaves `releasing`
behind, which whoever comes next finds and calls `unknown`.
"""

from typing import Final, Literal

from scan_pipeline.agents.action_desk import ActionDesk
from scan_pipeline.agents.actions import Action
from scan_pipeline.agents.desk import Standing
from scan_pipeline.agents.execution import StaleError
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.policy import Policy
from scan_pipeline.agents.proposals import Proposal
from scan_pipeline.agents.proposing import granted_action, read_row, unknown_proposal
from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.errors import EvidenceError

AUTOMATIC: Final = "policy"
"""Who released what no person did."""

WAIT_S: Final = 150
"""How long one release waits for another, in seconds; one asks twice, for a minute each."""

_FALLEN: Final = frozenset(
    {
        "receipt_fell",
        "receipt_changed",
        "receipt_superseded",
        "rows_may_be_reclassified",
        "handle_expired",
        "handle_unknown",
    }
)
"""Codes of a handle whose ground is gone for good; of the others some may be mended."""


def release_by_person(desk: ActionDesk, person: str, *, proposal: str) -> Proposal:
    """Release a proposal as a person whom the policy names.

    Args:
        desk: what every operation needs.
        person: the releasing principal.
        proposal: its name.

    Returns:
        The proposal as it is afterwards: done, unknown, stale, failed, withdrawn, or still
        proposed where no connection came about.

    Raises:
        ReaderError: it is not released, and stays as it was; says what is missing.
    """
    return _release(desk, proposal, person=person)


def release_automatic(desk: ActionDesk, principal: str, *, proposal: str) -> Proposal:
    """Release a principal's own proposal where the policy says that no person is needed.

    Raises:
        ReaderError: as above; or it is another's, or waits for a person.
    """
    found = desk.proposals.find(proposal)
    if found is None or found.principal != principal:
        raise unknown_proposal()
    return _release(desk, proposal, person=None)


def withdraw_by_person(desk: ActionDesk, person: str, *, proposal: str) -> Proposal:
    """Withdraw a proposal as its proposer or as a person who may release it.

    One that is `unknown` may be withdrawn too, by whoever has looked at the source and seen that
    nothing was done; only then may the same be proposed again.

    Raises:
        ReaderError: this person may not, or the proposal is past that.
    """
    desk.settle()
    found = desk.proposals.find(proposal)
    if found is None:
        raise unknown_proposal()
    policy = desk.reading.policy()
    action = policy.actions.get(found.action)
    if person != found.principal:
        if action is None:
            raise ReaderError("ask_for_access", "action_not_granted", "the action is gone")
        _may_release(policy, action, person, tenant=found.tenant)
    return desk.withdraw(found, leaves=("proposed", "unknown"), by=person)


def _release(desk: ActionDesk, name: str, *, person: str | None) -> Proposal:
    with desk.lock.held(wait=WAIT_S) as held:
        if not held:
            raise ReaderError("retry", "release_under_way", "another release is under way")
        desk.settle(held=True)
        proposal = desk.proposals.find(name)
        if proposal is None:
            raise unknown_proposal()
        by = person or AUTOMATIC
        try:
            return _released(desk, proposal, by=by, person=person)
        except ReaderError as error:
            desk.note(proposal, "release_refused", by=by, state=error.code)
            raise


def _released(desk: ActionDesk, proposal: Proposal, *, by: str, person: str | None) -> Proposal:
    if proposal.state != "proposed":
        raise ReaderError(
            "stop",
            "not_open",
            f"the proposal is {proposal.state} ({proposal.reason}); expected proposed",
        )
    policy = desk.reading.policy()
    action = granted_action(policy, proposal.principal, proposal.action, scan=proposal.scan)
    _may_release(policy, action, person, tenant=proposal.tenant)
    if action.digest() != proposal.action_digest:
        return _ended(desk, proposal, "withdrawn", "the action is another now; propose it again")
    try:
        standing = desk.reading.standing(policy, proposal.principal, proposal.handle)
        if standing.handle.receipt_id != proposal.receipt_id:
            return _ended(desk, proposal, "withdrawn", "its handle stands on another receipt")
        if desk.reading.ledger.full_read(proposal.handle, row=proposal.row) != proposal.version:
            return _ended(desk, proposal, "withdrawn", "another version was read in full since")
        read_row(desk.reading, standing, proposal.row, version=proposal.version)
    except ReaderError as error:
        if error.code in _FALLEN:
            return _ended(desk, proposal, "withdrawn", f"its ground fell ({error.code})")
        raise
    except EvidenceError as error:
        return _ended(desk, proposal, "withdrawn", f"its ground fell ({type(error).__name__})")
    _accounted_for(desk, standing, proposal, action)
    return _sent(desk, policy, proposal, by=by)


def _sent(desk: ActionDesk, policy: Policy, proposal: Proposal, *, by: str) -> Proposal:
    executor = desk.request(policy, proposal)
    try:
        condition = executor.condition()
    except StaleError as error:
        return _ended(desk, proposal, "stale", f"{error}; nothing was sent")
    call = executor.call(condition, idempotency_key=proposal.idempotency_key)
    secret = executor.secret(call.url)
    desk.note(proposal, "action_checked", by=by)
    if not desk.proposals.step(
        proposal.name, leaves="proposed", to="releasing", reason="released", now=desk.now, by=by
    ):
        now = desk.again(proposal)
        raise ReaderError("stop", "not_open", f"the proposal is {now.state} ({now.reason})")
    try:
        outcome = executor.send(call, secret=secret)
    except BaseException:
        # Whatever it was, bytes may have left; only what is known not to have is sent again.
        desk.take(proposal, "unknown", leaves="releasing", reason="sending broke off", by=by)
        raise
    desk.take(proposal, outcome.state, leaves="releasing", reason=outcome.reason, by=by)
    return desk.again(proposal)


def _ended(
    desk: ActionDesk, proposal: Proposal, to: Literal["withdrawn", "stale"], reason: str
) -> Proposal:
    desk.take(proposal, to, leaves="proposed", reason=reason, by=None)
    return desk.again(proposal)


def _may_release(policy: Policy, action: Action, person: str | None, *, tenant: str | None) -> None:
    if person is None and action.release != "automatic":
        raise ReaderError(
            "ask_for_access", "release_by_person", "a person releases this; the proposal waits"
        )
    if person is None:
        return
    one = policy.principals.get(person)
    granted = action.release == "automatic" or person in action.releasers
    # Whoever is of a tenant decides for that tenant alone.
    of_tenant = one is not None and one.tenant in (None, tenant)
    if one is None or one.revoked or not granted or not of_tenant:
        raise ReaderError(
            "ask_for_access", "release_not_granted", f"{person} may not release this proposal"
        )


def _accounted_for(
    desk: ActionDesk, standing: Standing, proposal: Proposal, action: Action
) -> None:
    """Refuse while the handle supports no complete conclusion.

    Raises:
        ReaderError: the ground is no verified whole; or rows were judged, or must be, and some
            that match were not; or this one was not judged to match.
    """
    ground, handle = standing.grounded.ground, standing.handle
    status, scope = ground.coverage_status, ground.conclusion_scope
    if not (status == "verified" and is_whole(status, scope)):
        raise ReaderError(
            "stop",
            "population_not_accounted_for",
            f"the records are {status}, {scope}; expected a verified whole before anything is done",
        )
    judged = desk.reading.ledger.judged(handle.name)
    if action.accounted_by == "engine" and not judged:
        return
    decided = judged.get("match", 0) + judged.get("no_match", 0)
    if decided != handle.matching:
        raise ReaderError(
            "narrow",
            "population_not_accounted_for",
            f"{decided:,} of the {handle.matching:,} rows that match are judged; expected a "
            "verdict on each before anything is done about one",
        )
    if desk.reading.ledger.verdict(handle.name, row=proposal.row) != "match":
        raise ReaderError(
            "stop", "row_not_a_match", f"row {proposal.row:,} was not judged to match"
        )
