"""A collection as a log of revisions, and the ordered views that pages are cut from."""

from bisect import bisect_right
from typing import Final, Literal, TypeAlias

from scan_pipeline.core.value import record
from scan_pipeline.simulator.mutations import Mutation, mutated
from scan_pipeline.simulator.rows import CollectionName, Row

Order: TypeAlias = Literal["key", "updated_at", "-updated_at"]
Place: TypeAlias = tuple[int, ...]
"""Where a row stands in an order: what a keyset cursor remembers."""

_VIEWS_KEPT: Final = 32


@record
class Selection:
    """Which rows of a revision, and in which order.

    Attributes:
        filters: (field, value as sent) pairs, all of which must hold; sorted by field.
        order: `key` is ascending by the number in the key.
        tie_breaker: without it rows that share a timestamp share a place, and a cursor between
            them loses the rest: the classic mistake, kept here on request.
        up_to: highest number in the sequence that is seen; None for no bound.
        tenant: the only tenant whose rows are seen; None for all.
    """

    filters: tuple[tuple[str, str], ...] = ()
    order: Order = "key"
    tie_breaker: bool = True
    up_to: int | None = None
    tenant: str | None = None


class View:
    """The rows of one selection in order; made once, then only cut.

    Attributes:
        rows: the rows in order.
        raws: their bytes, in the same order.
        places: their places, in the same order.
    """

    def __init__(self, rows: tuple[Row, ...], selection: Selection) -> None:
        chosen = [row for row in rows if _is_seen(row, selection)]
        placed = sorted(((_place(row, selection), row) for row in chosen), key=lambda pair: pair[0])
        self.places = [place for place, _ in placed]
        self.rows = [row for _, row in placed]
        self.raws = [row.raw for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def start_after(self, place: Place | None) -> int:
        """Return the index of the first row behind a place; None is the beginning."""
        return 0 if place is None else bisect_right(self.places, place)


class Revision:
    """One state of a collection, for good.

    Attributes:
        number: 0 for the population, one more for each mutation.
        rows: ordered by number.
    """

    def __init__(self, number: int, rows: tuple[Row, ...]) -> None:
        self.number = number
        self.rows = rows
        self._views: dict[Selection, View] = {}

    @property
    def high_water_mark(self) -> int:
        """The highest number in the append-only sequence; 0 where nothing is."""
        return self.rows[-1].number if self.rows else 0

    def view(self, selection: Selection) -> View:
        """Return the rows of a selection; the second time costs nothing."""
        if selection not in self._views:
            # Filter values are anybody's: unbounded, a long-lived server would keep them all.
            if len(self._views) >= _VIEWS_KEPT:
                del self._views[next(iter(self._views))]
            self._views[selection] = View(self.rows, selection)
        return self._views[selection]


class Collection:
    """The revisions of one collection, and the scripted mutations still to come.

    Scripted mutations happen in the order of their pages. Revision k is the population after the
    first k of them, whoever asks: a new process comes to the same revision by the same steps, so
    it can serve a snapshot that an earlier process pinned.
    """

    def __init__(
        self, name: CollectionName, *, rows: tuple[Row, ...], scripted: tuple[Mutation, ...]
    ) -> None:
        self.name: CollectionName = name
        self._revisions = [Revision(0, rows)]
        self._pending = sorted(scripted, key=lambda mutation: mutation.after_page or 0)

    @property
    def head(self) -> Revision:
        """The newest revision: the live state."""
        return self._revisions[-1]

    def apply(self, mutation: Mutation) -> None:
        """Let a mutation happen now."""
        number = self.head.number + 1
        self._revisions.append(Revision(number, mutated(self.head.rows, mutation, revision=number)))

    def let_happen(self, *, through_page: int) -> None:
        """Let the scripted mutations happen that follow pages up to this one."""
        while self._pending and (self._pending[0].after_page or 0) <= through_page:
            self.apply(self._pending[0])
            del self._pending[0]

    def revision(self, number: int) -> Revision | None:
        """Return a revision, going there by script if need be; None where there is none."""
        while number > self.head.number and self._pending:
            self.apply(self._pending[0])
            del self._pending[0]
        return self._revisions[number] if 0 <= number < len(self._revisions) else None


def _is_seen(row: Row, selection: Selection) -> bool:
    if selection.tenant is not None and row.traits.tenant != selection.tenant:
        return False
    if selection.up_to is not None and row.number > selection.up_to:
        return False
    return all(str(getattr(row.traits, field)) == value for field, value in selection.filters)


def _place(row: Row, selection: Selection) -> Place:
    match selection.order:
        case "key":
            return (row.number,)
        case "updated_at":
            moment = row.traits.updated
        case "-updated_at":
            moment = -row.traits.updated
    return (moment, row.number) if selection.tie_breaker else (moment,)
