"""Snapshot ids that carry all they stand for, so that no process has to remember them."""

import re
from datetime import UTC, datetime
from typing import Final

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import RequestRefusedError
from scan_pipeline.simulator.rows import CollectionName

_SHAPE: Final = re.compile(
    r"(?P<collection>[a-z_]+):(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)@r(?P<revision>0|[1-9]\d{0,8})"
)
_MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"


@record
class Snapshot:
    """A pin on one revision of a collection.

    Attributes:
        collection: whose revision.
        at: when it was pinned, UTC, whole seconds.
        revision: number of the revision.
    """

    collection: CollectionName
    at: datetime
    revision: int

    @property
    def text(self) -> str:
        """The id as it travels, e.g. `customers:2026-08-29T09:18:00Z@r0`."""
        return f"{self.collection}:{self.at.strftime(_MOMENT)}@r{self.revision}"

    def age_s(self, now: datetime) -> float:
        """Return its age in seconds."""
        return (now - self.at).total_seconds()


def pin(collection: CollectionName, *, revision: int, now: datetime) -> Snapshot:
    """Pin a revision at a moment (aware; kept to the second, in UTC)."""
    at = now.astimezone(UTC).replace(microsecond=0)
    return Snapshot(collection=collection, at=at, revision=revision)


def parse_snapshot(text: str, *, collection: CollectionName) -> Snapshot:
    """Read a snapshot id back.

    Raises:
        RequestRefusedError: 400; it is no snapshot id, or one of another collection.
    """
    shape = _SHAPE.fullmatch(text)
    if shape is None or shape["collection"] != collection:
        raise RequestRefusedError(
            400, "snapshot_unknown", f"expected a snapshot_id of {collection}"
        )
    try:
        at = datetime.strptime(shape["at"], _MOMENT).replace(tzinfo=UTC)
    except ValueError as error:
        raise RequestRefusedError(400, "snapshot_unknown", "snapshot_id names no moment") from error
    return Snapshot(collection=collection, at=at, revision=int(shape["revision"]))
