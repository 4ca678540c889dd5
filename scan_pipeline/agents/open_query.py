"""Open a question: how many match, and a handle; no rows."""

from typing import Final

from scan_pipeline.agents import statements
from scan_pipeline.agents.access import Access, access_to
from scan_pipeline.agents.aggregate import figures_call
from scan_pipeline.agents.answers import Opened
from scan_pipeline.agents.budgets import Budget, Taken
from scan_pipeline.agents.desk import Desk, bounds, encoded, size_of, summary
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import BEFORE_ALL, Handle, as_text, new_name
from scan_pipeline.agents.opening import open_newest
from scan_pipeline.agents.policy import Policy
from scan_pipeline.agents.queries import Query, normal, query_digest, query_json
from scan_pipeline.agents.viewing import Viewed

_QUERY_PART: Final = 4
"""A question may be this part of an answer's bytes: it is repeated in each, and said in words."""


def open_query(desk: Desk, principal: str, *, scan: str, view: str | None, query: Query) -> Opened:
    """Open a question over the newest generation that is proven as far as it wants.

    Args:
        desk: what every operation needs.
        principal: who asks, by the connection.
        scan: of which scan.
        view: through which view; None where one is granted and no more.
        query: what is asked.

    Raises:
        ReaderError: it is not allowed, not bounded, or no generation is proven so far.
    """
    policy = desk.policy()
    access = access_to(policy, principal, scan=scan, view=view)
    budget = desk.budget(policy, principal)
    with budget.taking(size=policy.limits.answer_bytes) as taken:
        answer = _opened(desk, policy, access, query, budget=budget, taken=taken)
        taken.used = size_of(answer)
    return answer


def _opened(
    desk: Desk, policy: Policy, access: Access, query: Query, *, budget: Budget, taken: Taken
) -> Opened:
    now, limits, scan = desk.workspace.clock(), policy.limits, access.scan
    grounded = open_newest(desk.collection(scan), query, access=access, now=now)
    viewed = Viewed(grounded.frame, access)
    asked = normal(query, access, viewed.schema)
    size, most = len(encoded(query_json(asked))), limits.answer_bytes // _QUERY_PART
    if size > most:
        raise ReaderError(
            "narrow",
            "query_too_large",
            f"the question has {size:,} bytes and every answer repeats it; expected at most "
            f"{most:,}: ask for fewer values at once",
        )
    if asked.grouping is not None:
        budget.refuse_again(
            figures_call(
                query_digest(asked, scan=scan),
                access.digest,
                grounded.ground.receipt_id,
                limits=limits,
            )
        )
    matching, population = viewed.counts(asked)
    begun = now.timestamp()
    handle = Handle(
        name=new_name("rh"),
        principal=access.principal,
        tenant=access.tenant,
        scan=scan,
        view=access.view,
        view_digest=access.digest,
        generation=grounded.ground.scan_generation,
        receipt_id=grounded.ground.receipt_id,
        query=as_text(query_json(asked)),
        query_digest=query_digest(asked, scan=scan),
        matching=matching,
        population=population,
        opened_at=begun,
        expires_at=begun + limits.handle_seconds,
    )
    desk.ledger.forget(before=begun)
    desk.ledger.add_handle(handle)
    cursor = None
    if matching and asked.stopping.rows != 0:
        cursor = desk.cursor(handle, page=1, first_row=1, after=BEFORE_ALL)
    return Opened(
        represents="summary",
        statement=statements.opened(
            asked,
            matching=matching,
            population=population,
            noun=access.noun,
            ground=grounded.ground,
        ),
        query=query_json(asked),
        result_handle=handle.name,
        first_cursor=cursor,
        ground=grounded.ground,
        summary=summary(handle, returned=0, has_more=matching > 0),
        limits=bounds(policy, budget, taken=taken, size=0),
    )
