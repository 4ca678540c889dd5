"""Aggregate in the engine: figures over every row that matches, and no rows."""

from scan_pipeline.agents import statements
from scan_pipeline.agents.answers import AggregateAnswer
from scan_pipeline.agents.desk import Desk, bounds, encoded, size_of, summary
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.queries import query_json


def aggregate(desk: Desk, principal: str, *, handle: str) -> AggregateAnswer:
    """Return the figures of a question that was opened with a grouping.

    Raises:
        ReaderError: as for a page; the question has no grouping, or gives too many groups.
    """
    policy = desk.policy()
    standing = desk.standing(policy, principal, handle)
    limits, budget = policy.limits, desk.budget(policy, principal)
    held = standing.handle
    call = {
        "aggregate": held.query_digest,
        "view": held.view_digest,
        "receipt": held.receipt_id,
        "most": [limits.answer_bytes, limits.groups],
    }
    budget.refuse_again(call)
    budget.reserve(size=limits.answer_bytes)
    grouping = standing.query.grouping
    if grouping is None:
        raise ReaderError(
            "narrow", "no_grouping", "this question asks for rows; open one with a grouping"
        )
    groups = standing.viewed.aggregate(standing.query, grouping, most=limits.groups)
    if len(groups) > limits.groups:
        raise budget.too_large(
            call,
            f"more than {limits.groups:,} groups; group by fewer fields, or bound the question",
        )
    size = len(encoded(groups))
    if size > limits.answer_bytes:
        raise budget.too_large(
            call,
            f"{len(groups):,} groups have {size:,} bytes and an answer may have "
            f"{limits.answer_bytes:,}; group by fewer fields, or bound the question",
        )
    answer = AggregateAnswer(
        represents="aggregate",
        statement=statements.aggregated(
            standing.query,
            groups=groups,
            matching=held.matching,
            noun=standing.access.noun,
            ground=standing.grounded.ground,
        ),
        query=query_json(standing.query),
        result_handle=handle,
        ground=standing.grounded.ground,
        summary=summary(held, returned=len(groups), has_more=False),
        groups=list(groups),
        limits=bounds(policy, budget, size=size),
    )
    budget.spend(size=size_of(answer))
    return answer
