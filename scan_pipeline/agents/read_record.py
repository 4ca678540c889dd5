"""Read one record in full."""

from scan_pipeline.agents.answers import RecordAnswer
from scan_pipeline.agents.desk import Desk, bounds, encoded, size_of
from scan_pipeline.agents.failures import ReaderError


def read_record(desk: Desk, principal: str, *, handle: str, row: int) -> RecordAnswer:
    """Read one record: every column that is seen, nothing cut.

    Args:
        desk: what every operation needs.
        principal: who asks, by the connection.
        handle: of which question.
        row: its number among those that match, from 1.

    Raises:
        ReaderError: as for a page; or the record alone is larger than one may be.
    """
    policy = desk.policy()
    standing = desk.standing(policy, principal, handle)
    limits, budget = policy.limits, desk.budget(policy, principal)
    call = {"record": row, "handle": handle, "most": limits.record_bytes}
    budget.refuse_again(call)
    budget.reserve(size=min(limits.record_bytes, limits.answer_bytes))
    matching = standing.handle.matching
    if not 0 < row <= matching:
        raise ReaderError("narrow", "row_unknown", f"found row {row:,}; expected 1 to {matching:,}")
    found = standing.viewed.row(standing.query, row)
    if found is None:
        raise ReaderError("restart", "row_gone", f"row {row:,} is not there; open the query again")
    size = len(encoded(found.values))
    if size > limits.record_bytes:
        raise budget.too_large(
            call,
            f"record {row:,} has {size:,} bytes and one may have {limits.record_bytes:,}; ask "
            "whoever keeps the policy for more record_bytes, or for a view of fewer columns",
        )
    budget.reserve(size=size)
    answer = RecordAnswer(
        represents="record",
        statement=f"Record {row:,} of the {matching:,} that match, whole as view "
        f"{standing.access.view} shows it.",
        result_handle=handle,
        ground=standing.grounded.ground,
        row=row,
        record_version=found.version,
        values=dict(found.values),
        limits=bounds(policy, budget, size=size),
    )
    desk.ledger.note_full_read(handle, row=row, version=found.version)
    budget.spend(size=size_of(answer))
    return answer
