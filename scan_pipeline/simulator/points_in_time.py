"""The points in time of a search engine: opened, named anew, expired, closed."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from scan_pipeline.simulator.answers import RequestRefusedError, compact
from scan_pipeline.simulator.search_index import Document, Ordered, matching

Names: TypeAlias = Literal["kept", "rotate", "rotate_and_forget"]
"""Whether each answer gives a point in time a new name, and whether the old ones still answer."""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


class PointInTime:
    """One that is open.

    Attributes:
        documents: those of its moment.
        shards: how many shards it spans.
        names: those under which it answers, newest last.
        until: when it ends by itself, in seconds since 1970.
    """

    def __init__(
        self, documents: Sequence[Document], *, shards: int, number: int, until: float
    ) -> None:
        self.documents, self.shards, self.number, self.until = documents, shards, number, until
        self.names = [f"pit-{number}-0=="]
        self._ordered: dict[bytes, Ordered] = {}

    def ordered(self, query: Any, sort: list[tuple[str, int]]) -> Ordered:
        """Return its documents that match, in order; the second time costs nothing."""
        key = compact([query, sort])
        if key not in self._ordered:
            self._ordered[key] = Ordered(matching(self.documents, query), sort)
        return self._ordered[key]


class PointsInTime:
    """Those of one engine.

    Attributes:
        open: the ones that are neither closed nor expired, by number.

    Args:
        names: what becomes of names.
    """

    def __init__(self, names: Names) -> None:
        self.open: dict[int, PointInTime] = {}
        self._names: Names = names
        self._made = 0

    def add(
        self, documents: Sequence[Document], *, shards: int, keep_alive: str, now: float
    ) -> PointInTime:
        """Open one."""
        self._made += 1
        made = PointInTime(
            documents, shards=shards, number=self._made, until=now + seconds(keep_alive)
        )
        self.open[made.number] = made
        return made

    def find(self, name: str, *, keep_alive: str | None, now: float) -> PointInTime:
        """Return one by its name, and keep it alive.

        Raises:
            RequestRefusedError: 404, it was closed, has expired, or never was.
        """
        found = self._named(name)
        if found is not None and found.until < now:
            self.drop(found)
            found = None
        if found is None:
            raise RequestRefusedError(
                404, "search_context_missing_exception", f"No search context found for id [{name}]"
            )
        if keep_alive is not None:
            found.until = now + seconds(keep_alive)
        return found

    def answered(self, pit: PointInTime) -> str:
        """Return the name under which it is to be asked next."""
        if self._names != "kept":
            pit.names.append(f"pit-{pit.number}-{len(pit.names)}==")
        if self._names == "rotate_and_forget":
            pit.names[:-1] = [""] * (len(pit.names) - 1)
        return pit.names[-1]

    def close(self, name: str) -> bool:
        """Close one, and say whether it was open."""
        found = self._named(name)
        if found is not None:
            self.drop(found)
        return found is not None

    def drop(self, pit: PointInTime) -> None:
        """Lose one, as a node that dies does."""
        self.open.pop(pit.number, None)

    def _named(self, name: str) -> PointInTime | None:
        return next((each for each in self.open.values() if name and name in each.names), None)


def seconds(keep_alive: str) -> float:
    """Read a time of the engine's, e.g. `5m`, in seconds."""
    number = keep_alive.rstrip("mshd")
    return float(number) * _UNITS[keep_alive[len(number) :]]
