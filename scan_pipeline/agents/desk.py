"""Where readers are answered: what every operation needs, and a handle opened again for one call.

Each call takes the principal from the connection, reads the policy anew and opens the generation
anew, and only then answers: what a caller holds (a handle, a cursor) grants nothing by itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import to_json

from scan_pipeline.agents.access import Access, access_to
from scan_pipeline.agents.answers import Bounds, Summary
from scan_pipeline.agents.budgets import Budget, Taken
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import Cursor, Handle, Ledger, new_name
from scan_pipeline.agents.opening import Grounded, newer_than, open_again, refuse_superseded
from scan_pipeline.agents.orders import OrderName, Orders
from scan_pipeline.agents.policy import Policy
from scan_pipeline.agents.queries import Query
from scan_pipeline.agents.viewing import Row, Viewed
from scan_pipeline.core.value import adapter, record
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.workspace import Workspace


@record
class Held:
    """A handle that is its caller's and may be used now; nothing is opened yet."""

    handle: Handle
    query: Query
    access: Access


@record
class Standing:
    """A handle, opened again for one call."""

    handle: Handle
    query: Query
    access: Access
    grounded: Grounded
    viewed: Viewed


class Desk:
    """Everything an operation needs.

    Args:
        workspace: where the tables lie.
        collection: opens a scan's generations by its name.
        policy: reads the policy as it is now.
        ledger: keeps handles and what was read.
        keyed: makes a keyed digest of a text that belongs to a scan.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        collection: Callable[[str], Collection],
        policy: Callable[[], Policy],
        ledger: Ledger,
        keyed: Callable[[str, str], str],
    ) -> None:
        self.workspace, self.collection = workspace, collection
        self.policy, self.ledger, self.keyed = policy, ledger, keyed
        self._orders = Orders(workspace.project.agents)

    def held(self, policy: Policy, principal: str, name: str) -> Held:
        """Return what a handle names, once it is found to be this principal's still.

        Raises:
            ReaderError: it is not this principal's, expired, or its access changed.
        """
        handle = self.ledger.handle(name)
        if handle is None or handle.principal != principal:
            raise unknown("handle")
        access = access_to(policy, principal, scan=handle.scan, view=handle.view)
        if (access.tenant, access.digest) != (handle.tenant, handle.view_digest):
            raise ReaderError(
                "restart",
                "access_changed",
                "what this view shows has changed; open the query again",
            )
        if self.workspace.clock().timestamp() >= handle.expires_at:
            raise ReaderError(
                "restart", "handle_expired", "the handle expired; open the query again"
            )
        query: Query = adapter(Query).validate_json(handle.query)
        return Held(handle=handle, query=query, access=access)

    def standing(self, policy: Policy, principal: str, name: str) -> Standing:
        """Open a handle again, once everything it is bound to is found as it was; as below."""
        return self.opened(self.held(policy, principal, name))

    def opened(self, held: Held) -> Standing:
        """Open the generation of a handle again.

        Raises:
            ReaderError: its receipt fell, or a row of it may be another by now.
        """
        handle, query, access = held.handle, held.query, held.access
        now = self.workspace.clock()
        collection = self.collection(handle.scan)
        if not access.sees_all_rows:
            newer = newer_than(collection, handle.generation, query)
            if newer is not None:
                refuse_superseded(collection, handle.generation)
                raise ReaderError(
                    "restart",
                    "rows_may_be_reclassified",
                    f"generation {newer} was accepted since, and this view shows only some rows: "
                    "one that was seen may be closed now; open the query again",
                )
        grounded = open_again(
            collection,
            query,
            generation=handle.generation,
            receipt_id=handle.receipt_id,
            access=access,
            now=now,
        )
        erased_at = grounded.redacted_at
        if erased_at is not None and erased_at.timestamp() >= handle.opened_at:
            raise ReaderError(
                "restart",
                "rows_changed",
                "records were redacted since the query was opened; open it again",
            )
        return Standing(
            handle=handle,
            query=query,
            access=access,
            grounded=grounded,
            viewed=Viewed(grounded.frame, access, delivered=grounded.delivered),
        )

    def rows(
        self,
        standing: Standing,
        *,
        first: int,
        count: int,
        after: tuple[int, int] | None = None,
        columns: Sequence[str] = (),
    ) -> list[Row]:
        """Return so many rows of a handle, from a number on, in the query's order.

        Args:
            standing: the handle, opened for this call.
            first: number of the first row, from 1.
            count: most rows.
            after: where the row before them was found when it was given; None for none.
            columns: which columns; all that are seen where empty.

        Raises:
            ReaderError: the row before them is another by now, or one is not shown any more.
        """
        handle, query = standing.handle, standing.query
        before = 0 if after is None else 1
        most = query.stopping.rows
        places = self._orders.places(
            OrderName(handle.receipt_id, handle.view_digest, handle.query_digest),
            first=first - before,
            count=count + before,
            rows=handle.matching if most is None else min(most, handle.matching),
            find=lambda: standing.viewed.places(query),
        )
        if after is not None and (not places.height or places.row(0) != after):
            raise ReaderError(
                "restart", "rows_changed", "the rows come otherwise now; open the query again"
            )
        return standing.viewed.rows(places.slice(before), columns)

    def budget(self, policy: Policy, principal: str) -> Budget:
        """Return what is left of a principal's run."""
        now = self.workspace.clock().timestamp()
        return Budget(self.ledger.runs, policy.limits, principal=principal, now=now)

    def cursor(self, handle: Handle, *, page: int, first_row: int, after: tuple[int, int]) -> str:
        """Keep where the next page begins and return its name."""
        cursor = Cursor(
            name=new_name("c"),
            handle=handle.name,
            page=page,
            first_row=first_row,
            after_page=after[0],
            after_position=after[1],
        )
        self.ledger.add_cursor(cursor)
        return cursor.name


def bounds(
    policy: Policy, budget: Budget, *, taken: Taken, size: int, page_size: int | None = None
) -> Bounds:
    """Return the limits that an answer was made within.

    Args:
        policy: the policy.
        budget: of which run.
        taken: what this answer may cost, taken out of the run already.
        size: bytes of the answer's items.
        page_size: most rows of this page.
    """
    return Bounds(
        page_size_applied=policy.limits.page_size if page_size is None else page_size,
        max_pages_per_run=policy.limits.run_pages,
        pages_left=budget.pages_left,
        response_bytes=size,
        bytes_left=budget.bytes_left + max(0, taken.size - size),
    )


def summary(handle: Handle, *, returned: int, has_more: bool) -> Summary:
    """Return how many there are beside how many are shown."""
    return Summary(
        matching_count=handle.matching,
        population=handle.population,
        returned_count=returned,
        has_more=has_more,
    )


def encoded(value: Any) -> bytes:
    """Return plain JSON values as they are sent."""
    return to_json(value)


def size_of(answer: Any) -> int:
    """Return the bytes of a whole answer."""
    return len(adapter(type(answer)).dump_json(answer))


def unknown(what: str) -> ReaderError:
    """Say the same of what is another's, what expired long ago, and what never was."""
    return ReaderError(
        "restart", f"{what}_unknown", f"no such {what} of yours; open the query again"
    )
