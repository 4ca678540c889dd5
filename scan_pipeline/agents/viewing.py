"""An opened collection as one principal sees it: counted, ordered and read by pages.

Everything is evaluated in the engine over the files that the receipt pins; a page holds no more in
memory than its rows.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import polars as pl

from scan_pipeline.agents.access import OUR_PREFIX, Access
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.queries import Grouping, Query
from scan_pipeline.core.value import record
from scan_pipeline.stages.readers.conditions import all_of
from scan_pipeline.stages.unlock import LABELS

PLACE: Final = ("_page", "_position")
"""Where the walk found a row: unique, so that any order becomes unique by it."""

_LEAF: Final = "_leaf_hash"
_SAFE_INTEGER: Final = 2**53 - 1
"""Largest integer that every JSON reader keeps (RFC 7493, section 2.2, March 2015)."""


@record
class Row:
    """One row of a view.

    Attributes:
        values: its visible columns as plain JSON values, and the labels of what is no proven whole.
        page: page of the walk on which it came, from 1.
        position: place on that page, from 0.
        version: its leaf hash, hex; it stays here, for it is a digest of hidden columns too.
    """

    values: Mapping[str, Any]
    page: int
    position: int
    version: str


class Viewed:
    """A collection seen through one principal's access.

    Args:
        frame: the opened records, columns as staged.
        access: what is seen of them.
        delivered: the same with the repeats of records that were delivered again, which rows are
            read from by their places; None where there is no difference.
    """

    def __init__(
        self, frame: pl.LazyFrame, access: Access, *, delivered: pl.LazyFrame | None = None
    ) -> None:
        whole = frame.collect_schema()
        self._labels = [name for name in LABELS if name in whole]
        self._frame = access.seen(frame, whole)
        self._delivered = self._frame if delivered is None else access.seen(delivered, whole)
        self._seen = pl.Schema(
            {
                name: dtype
                for name, dtype in self._frame.collect_schema().items()
                if not name.startswith(OUR_PREFIX)
            }
        )

    @property
    def schema(self) -> pl.Schema:
        """Return the columns that are seen."""
        return self._seen

    def counts(self, query: Query) -> tuple[int, int]:
        """Return how many rows match, and how many there are in the view; both exact."""
        # Bound to a column: without one, a condition that is always true is one value and no rows.
        met = all_of(query.where, self._seen) & pl.col(PLACE[0]).is_not_null()
        found = self._frame.select(met.sum().alias("met"), pl.len().alias("all"))
        row = found.collect(engine="streaming").row(0)
        return int(row[0] or 0), int(row[1])

    def places(self, query: Query) -> pl.DataFrame:
        """Return where the walk found the rows that match, in the query's order; no values.

        A question that stops after some rows has the places of those alone.
        """
        by = [each.field for each in query.order]
        down = [each.descending for each in query.order]
        found = self._frame.filter(all_of(query.where, self._seen)).select([*by, *PLACE])
        ordered = found.sort(
            *by, *PLACE, descending=[*down, False, False], nulls_last=True, maintain_order=False
        )
        most = query.stopping.rows
        if most is not None:
            ordered = ordered.head(most)
        return ordered.select(PLACE).collect(engine="streaming")

    def rows(self, places: pl.DataFrame, columns: Sequence[str] = ()) -> list[Row]:
        """Return the rows at some places, in their order, as far as the view shows them now.

        Args:
            places: where the walk found them.
            columns: which columns; all that are seen where empty.

        Raises:
            ReaderError: the view does not show a row any more.
        """
        if not places.height:
            return []
        page, pages = pl.col(PLACE[0]), places[PLACE[0]].unique()
        # The bounds let the reader pass over the files' other row groups; the pages, over what
        # else of a row lies on none of them.
        near = self._delivered.filter(
            page.is_between(pages.min(), pages.max()) & page.is_in(pages.implode())
        )
        named = [*(columns or self._seen), *self._labels]
        here = near.join(places.lazy(), on=PLACE, how="semi")
        read = here.select([*named, *PLACE, _LEAF]).collect(engine="streaming")
        found = {(row["_page"], row["_position"]): row for row in read.iter_rows(named=True)}
        if len(found) != places.height:
            raise ReaderError(
                "restart",
                "rows_changed",
                f"{places.height - len(found):,} rows are not shown any more; open the query again",
            )
        return [
            Row(
                values={name: plain(found[place][name]) for name in named},
                page=place[0],
                position=place[1],
                version=found[place][_LEAF].hex(),
            )
            for place in places.iter_rows()
        ]

    def aggregate(self, query: Query, grouping: Grouping, *, most: int) -> Sequence[dict[str, Any]]:
        """Return the groups and their figures, in order; where there are more, one over `most`.

        Each is `{"by": {...}, "figures": {...}}`: a column may be called as a figure is.

        Raises:
            ReaderError: a sum has more digits than the engine keeps.
        """
        by = [pl.col(name).alias(f"by{n}") for n, name in enumerate(grouping.by)]
        figures = [
            _figure(each.measure, each.field, self._seen).alias(f"figure{n}")
            for n, each in enumerate(grouping.measures)
        ]
        found = self._frame.filter(all_of(query.where, self._seen))
        grouped = found.group_by(by).agg(figures) if by else found.select(figures)
        try:
            groups = grouped.head(most + 1).collect(engine="streaming")
        except pl.exceptions.ComputeError as error:
            raise ReaderError(
                "narrow", "figure_too_large", "a figure overflows what the engine can hold exactly"
            ) from error
        if by:
            groups = groups.sort([each.meta.output_name() for each in by], nulls_last=True)
        names = [each.words() for each in grouping.measures]
        return [
            {
                "by": dict(zip(grouping.by, map(plain, row[: len(by)]), strict=True)),
                "figures": dict(zip(names, map(plain, row[len(by) :]), strict=True)),
            }
            for row in groups.iter_rows()
        ]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it without loss.

    Decimals and moments are text; so are integers that a reader of JSON may round, and NaN and the
    infinities, which JSON does not have.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _SAFE_INTEGER else str(value)
        case Decimal():
            return f"{value:f}"
        case float():
            return value if isfinite(value) else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case _:
            return str(value)


def _figure(measure: str, field: str | None, schema: pl.Schema) -> pl.Expr:
    if field is None:
        return pl.len()
    column = pl.col(field)
    match measure:
        case "sum":
            # Polars adds integers within their own width, and would wrap around silently.
            whole = schema[field].is_integer()
            return (column.cast(pl.Decimal(38, 0)) if whole else column).sum()
        case "min":
            return column.min()
        case "max":
            return column.max()
        case _:
            return column.n_unique()
