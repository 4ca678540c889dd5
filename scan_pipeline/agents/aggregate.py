"""Aggregate in the engine: figures over every row that matches, and no rows."""

from scan_pipeline.agents import statements
from scan_pipeline.agents.answers import AggregateAnswer
from scan_pipeline.agents.desk import Desk, bounds, encoded, size_of, summary
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.policy import Limits
from scan_pipeline.agents.queries import query_json


def aggregate(desk: Desk, principal: str, *, handle: str) -> AggregateAnswer:
    """Return the figures of a question that was opened with a grouping.

    Raises:
        ReaderError: as for a page; the question has no grouping, or gives too many groups.
    """
    policy = desk.policy()
    may = desk.held(policy, principal, handle)
    limits, budget = policy.limits, desk.budget(policy, principal)
    held = may.handle
    call = figures_call(held.query_digest, held.view_digest, held.receipt_id, limits=limits)
    budget.refuse_again(call)
    grouping = may.query.grouping
    if grouping is None:
        raise ReaderError(
            "narrow", "no_grouping", "this question asks for rows; open one with a grouping"
        )
    with budget.taking(size=limits.answer_bytes) as taken:
        standing = desk.opened(may)
        groups = standing.viewed.aggregate(standing.query, grouping, most=limits.groups)
        if len(groups) > limits.groups:
            raise budget.too_large(call, too_many_groups(limits.groups))
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
            limits=bounds(policy, budget, taken=taken, size=len(encoded(groups))),
        )
        size = size_of(answer)
        if size > limits.answer_bytes:
            raise budget.too_large(
                call,
                f"the answer, {len(groups):,} groups, has {size:,} bytes and one may have "
                f"{limits.answer_bytes:,}; group by fewer fields, or bound the question",
            )
        taken.used = size
    return answer


def figures_call(
    query: str, view: str, receipt: str, *, limits: Limits
) -> dict[str, str | list[int]]:
    """Return what makes two questions for figures the same call: digests, and what is allowed."""
    return {
        "aggregate": query,
        "view": view,
        "receipt": receipt,
        "most": [limits.answer_bytes, limits.groups],
    }


def too_many_groups(most: int) -> str:
    """Say that there are more groups than may be given."""
    return f"more than {most:,} groups; group by fewer fields, or bound the question"
