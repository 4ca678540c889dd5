"""The customers as documents of a search engine: spread over indices and shards, and ordered."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import RequestRefusedError
from scan_pipeline.simulator.rows import Row

LONG: Final = 2**53
"""Ledger numbers lie above it: a double holds every other of them alone."""

_ORDERS: Final = {"asc": 1, "desc": -1}


@record
class Layout:
    """How documents are spread.

    Attributes:
        alias: the name that stands for all indices.
        indices: how many indices, `<alias>-000001` and so on.
        shards: shards of each.
        ids: `unique`, or `per_index`: numbers that begin anew in each index.
    """

    alias: str = "customers"
    indices: int = 1
    shards: int = 3
    ids: str = "unique"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the indices."""
        return tuple(f"{self.alias}-{number:06}" for number in range(1, self.indices + 1))

    def resolve(self, asked: str) -> bool:
        """Say whether a name, a list or a pattern stands for the indices, all of them.

        Raises:
            RequestRefusedError: 404, there is no index of that name.
        """
        known = {self.alias, f"{self.alias}*", f"{self.alias}-*", *self.names}
        if missing := [each for each in asked.split(",") if each not in known and "*" not in each]:
            raise RequestRefusedError(
                404, "index_not_found_exception", f"no such index [{missing[0]}]"
            )
        return any(each in known for each in asked.split(","))


@record
class Document:
    """One document where it lies.

    Attributes:
        row: the customer.
        index: name of its index.
        id: its `_id`.
        shard: ordinal of its shard over all indices.
        doc: number within the shard, as Lucene numbers documents.
    """

    row: Row
    index: str
    id: str
    shard: int
    doc: int

    def value(self, field: str) -> Any:
        """Return a sort value.

        Raises:
            RequestRefusedError: 400, there is no such field.
        """
        match field:
            case "_shard_doc":
                return self.shard << 32 | self.doc
            case "_doc":
                return self.doc
            case "_id":
                return self.id
            case "_index":
                return self.index
            case "ledger_no":
                return LONG + self.row.number
            case "updated_at":
                return self.row.traits.updated
            case "customer_id":
                return f"customer-{self.row.number}"
            case "region" | "status" | "tenant":
                return getattr(self.row.traits, field)
            case _:
                raise RequestRefusedError(
                    400, "query_shard_exception", f"No mapping found for [{field}] in order to sort"
                )

    def hit(self, fields: Sequence[str]) -> bytes:
        """Return the hit as it is served."""
        values = ",".join(_json(self.value(each)) for each in fields)
        head = f'{{"_index":"{self.index}","_id":"{self.id}","_score":null,"_source":'
        return head.encode() + self.row.raw + f',"sort":[{values}]}}'.encode()


class Ordered:
    """Documents of one moment that match, in order; made once, then only cut."""

    def __init__(self, documents: Sequence[Document], sort: Sequence[tuple[str, int]]) -> None:
        self.fields = [field for field, _ in sort]
        self._signs = [sign for _, sign in sort]
        placed = sorted(
            ((self._place([d.value(f) for f in self.fields]), d) for d in documents),
            key=lambda pair: pair[0],
        )
        self._places = [place for place, _ in placed]
        self.documents = [document for _, document in placed]

    def start_after(self, values: Sequence[Any] | None) -> int:
        """Return where the documents strictly behind some sort values begin.

        Raises:
            RequestRefusedError: 400, there are not as many values as sort fields.
        """
        if values is None:
            return 0
        if len(values) != len(self.fields):
            raise RequestRefusedError(
                400,
                "illegal_argument_exception",
                f"search_after has {len(values)} value(s) but sort has {len(self.fields)}.",
            )
        return bisect_right(self._places, self._place(values))

    def _place(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            value if isinstance(value, str) else value * sign
            for value, sign in zip(values, self._signs, strict=True)
        )


def documents_of(rows: Sequence[Row], layout: Layout) -> list[Document]:
    """Spread rows over indices and shards, each shard numbering its own."""
    counters: dict[int, int] = {}
    found: list[Document] = []
    for row in rows:
        index = row.number % layout.indices
        shard = index * layout.shards + row.number // layout.indices % layout.shards
        doc = counters[shard] = counters.get(shard, -1) + 1
        own = row.number // layout.indices if layout.ids == "per_index" else row.number
        found.append(
            Document(row=row, index=layout.names[index], id=f"customer-{own}", shard=shard, doc=doc)
        )
    return found


def matching(documents: Sequence[Document], query: Mapping[str, Any] | None) -> list[Document]:
    """Return the documents that a query matches: `match_all`, or a `term` on one field.

    Raises:
        RequestRefusedError: 400, the query is another one.
    """
    match query or {"match_all": {}}:
        case {"match_all": _}:
            return list(documents)
        case {"term": {**term}} if len(term) == 1:
            ((field, value),) = term.items()
            return [each for each in documents if each.value(field) == value]
        case _:
            raise RequestRefusedError(400, "parsing_exception", "unknown query")


def sort_of(raw: Sequence[Any]) -> list[tuple[str, int]]:
    """Read a sort: names, `{name: order}` or `{name: {order: ...}}`; text ascends only."""
    found: list[tuple[str, int]] = []
    for each in raw:
        field, told = next(iter(each.items())) if isinstance(each, dict) else (each, "asc")
        order = told.get("order", "asc") if isinstance(told, dict) else told
        found.append((field, _ORDERS[order]))
    return found


def _json(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
