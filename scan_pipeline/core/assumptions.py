"""What has to be believed for a judgement to hold, because no walk can show it."""

from collections.abc import Iterator

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import AssumptionBasis
from scan_pipeline.core.walk_evidence import WalkEvidence


@record
class Assumption:
    """One thing that has to be believed, and why it is."""

    name: str
    basis: AssumptionBasis


def assumptions(scan: Scan, walk: WalkEvidence) -> tuple[Assumption, ...]:
    """List what has to be believed, each with its basis; a basis that nobody gave is `assumed`."""
    return (*_held_still(scan, walk), *_counted(scan), *_asked(scan, walk))


def _held_still(scan: Scan, walk: WalkEvidence) -> Iterator[Assumption]:
    """Yield what keeps the collection the one it was."""
    source = scan.source
    if source.checkpoint is not None:
        basis = source.checkpoint.basis
        if source.checkpoint.covers_since == "start":
            yield Assumption(name="checkpoint_covers_all_writes", basis=basis)
        if walk.round is not None and walk.round.since is None:
            yield Assumption(name="baseline_keeps_what_stays", basis=basis)
        if source.checkpoint.updates == "changed_members":
            yield Assumption(name="returning_records_come_whole", basis="assumed")
        return
    match scan.contract.consistency:
        case "snapshot" if source.snapshot is not None:
            yield Assumption(name="pin_honoured", basis=source.snapshot.basis)
            if source.snapshot.rotates:
                yield Assumption(name="pin_names_one_version", basis=source.snapshot.basis)
        case "high_water_mark" if source.high_water_mark is not None:
            for name in ("append_only", "rows_immutable", "keys_visible_in_order"):
                yield Assumption(name=name, basis=source.high_water_mark.basis)
        case "change_token" if source.change_token_basis is not None:
            yield Assumption(name="token_covers_all_writes", basis=source.change_token_basis)
            yield Assumption(name="token_never_returns", basis=source.change_token_basis)
        case "two_equal_walks":
            yield Assumption(name="key_immutable", basis="user_declared")
            if not source.positions_are_ours:
                # A link or token may hold an offset, which nobody can see.
                yield Assumption(name="continuations_go_by_key", basis="assumed")
        case _:
            pass


def _counted(scan: Scan) -> Iterator[Assumption]:
    """Yield what says how many there are."""
    source = scan.source
    if source.exact_total and source.count is not None:
        yield Assumption(name="count_exact", basis=source.count.basis)
    if scan.contract.denominator == "end_signal":
        # The contract itself declares it where the source's facts say nothing of it.
        basis = source.end_signal_basis or "user_declared"
        yield Assumption(name="end_signal_is_denominator", basis=basis)


def _asked(scan: Scan, walk: WalkEvidence) -> Iterator[Assumption]:
    """Yield what makes all pages answers to one question of one principal."""
    source = scan.source
    for name, basis in source.believed:
        yield Assumption(name=name, basis=basis)
    yield Assumption(
        name="principal_view_constant", basis="observed" if _seen_constant(walk) else "assumed"
    )
    if source.continuation == "repeatable" and not source.positions_are_ours:
        basis = source.continuation_basis or "assumed"
        yield Assumption(name="token_repeatable", basis=basis)
    if walk.unrepeated:
        basis = source.kept_query_basis or "assumed"
        yield Assumption(name="next_link_keeps_filter", basis=basis)


def _seen_constant(walk: WalkEvidence) -> bool:
    """Say whether the source named one principal before the first page and after the last."""
    seen = {
        None if each is None else (each.principal, each.tenant)
        for each in (walk.before, walk.after, *walk.openings_of_second)
    }
    return walk.before.principal is not None and len(seen) == 1
