"""Open a question: how many match, and a handle; no rows."""

from scan_pipeline.agents import statements
from scan_pipeline.agents.access import access_to
from scan_pipeline.agents.answers import Opened
from scan_pipeline.agents.desk import Desk, bounds, size_of, summary
from scan_pipeline.agents.ledger import BEFORE_ALL, Handle, as_text, new_name
from scan_pipeline.agents.opening import open_newest
from scan_pipeline.agents.queries import Query, normal, query_digest, query_json
from scan_pipeline.agents.viewing import Viewed


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
    policy, now = desk.policy(), desk.workspace.clock()
    access = access_to(policy, principal, scan=scan, view=view)
    budget = desk.budget(policy, principal)
    budget.reserve(size=1)
    grounded = open_newest(desk.collection(scan), query, view=access.view, now=now)
    viewed = Viewed(grounded.frame, access)
    asked = normal(query, access, viewed.schema)
    matching, population = viewed.counts(asked)
    begun = now.timestamp()
    handle = Handle(
        name=new_name("rh"),
        principal=principal,
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
        expires_at=begun + policy.limits.handle_seconds,
    )
    desk.ledger.forget(before=begun)
    desk.ledger.add_handle(handle)
    cursor = None
    if matching and asked.stopping.rows != 0:
        cursor = desk.cursor(handle, page=1, first_row=1, after=BEFORE_ALL)
    answer = Opened(
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
        limits=bounds(policy, budget, size=0),
    )
    budget.spend(size=size_of(answer))
    return answer
