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
    may = desk.held(policy, principal, handle)
    limits, budget = policy.limits, desk.budget(policy, principal)
    held, query = may.handle, may.query
    matching = held.matching
    # A reader who said that it stops after n rows, or wants figures, is given no others here.
    most = min(matching, matching if query.stopping.rows is None else query.stopping.rows)
    if not 0 < row <= most:
        raise ReaderError(
            "narrow",
            "row_unknown",
            f"found row {row:,}; the question and its stopping policy give {most:,} of the "
            f"{matching:,} that match, numbered from 1",
        )
    call = {
        "record": row,
        "query": held.query_digest,
        "view": held.view_digest,
        "receipt": held.receipt_id,
        "most": limits.record_bytes,
    }
    budget.refuse_again(call)
    with budget.taking(size=min(limits.record_bytes, limits.answer_bytes)) as taken:
        standing = desk.opened(may)
        (found,) = desk.rows(standing, first=row, count=1)
        answer = RecordAnswer(
            represents="record",
            statement=f"Record {row:,} of the {matching:,} that match, whole as view "
            f"{standing.access.view} shows it.",
            result_handle=handle,
            ground=standing.grounded.ground,
            row=row,
            record_version=desk.keyed(held.scan, found.version),
            values=dict(found.values),
            limits=bounds(policy, budget, taken=taken, size=len(encoded(found.values))),
        )
        size = size_of(answer)
        if size > limits.record_bytes:
            raise budget.too_large(
                call,
                f"record {row:,} has {size:,} bytes and one may have {limits.record_bytes:,}; ask "
                "whoever keeps the policy for more record_bytes, or for a view of fewer columns",
            )
        budget.widen(taken, size)
        taken.used = size
        desk.ledger.note_full_read(handle, row=row, version=found.version)
    return answer
