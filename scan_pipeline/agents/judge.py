"""A reader's own judgement, row by row, of rows that it was really given."""

from collections.abc import Mapping

from scan_pipeline.agents.answers import Judged
from scan_pipeline.agents.desk import Desk, size_of
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import Verdict

_NAMED = 10
"""Most rows that a failure names."""


def judge(desk: Desk, principal: str, *, handle: str, verdicts: Mapping[int, Verdict]) -> Judged:
    """Keep a reader's verdicts; a later one of a row replaces the earlier one.

    Args:
        desk: what every operation needs.
        principal: who asks, by the connection.
        handle: of which question.
        verdicts: by row number.

    Raises:
        ReaderError: as for a page; or a row was never given, and so cannot have been judged.
    """
    policy = desk.policy()
    standing = desk.standing(policy, principal, handle)
    matching = standing.handle.matching
    strange = [row for row in verdicts if not 0 < row <= matching]
    unread = strange or desk.ledger.unread(handle, verdicts)
    if unread:
        named = ", ".join(map(str, unread[:_NAMED]))
        raise ReaderError(
            "narrow",
            "row_not_read",
            f"{len(unread):,} rows were not given under this handle (row {named}); read them first",
        )
    desk.ledger.judge(handle, sorted(verdicts.items()))
    judged = desk.ledger.judged(handle)
    matched, not_matched = judged.get("match", 0), judged.get("no_match", 0)
    answer = Judged(
        represents="summary",
        statement=f"{matched + not_matched:,} of the {matching:,} rows that match are judged; "
        "conclude says what may be said.",
        result_handle=handle,
        ground=standing.grounded.ground,
        matched=matched,
        not_matched=not_matched,
        unsure=judged.get("unsure", 0),
        matching_count=matching,
    )
    desk.budget(policy, principal).spend(size=size_of(answer))
    return answer
