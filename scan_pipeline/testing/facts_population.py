"""Records made up for the facts of a scan: its key, and every field that the walk reads."""

from collections.abc import Sequence
from typing import Any, Final

from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.last_key import LastKeySource
from scan_pipeline.testing.bench import Key
from scan_pipeline.testing.faults import NotExercisedError
from scan_pipeline.testing.paths import put

PARTITIONS: Final = ("alpha", "beta", "gamma")

MARK: Final = 1_000_000
"""The high-water mark: every record of the beginning lies below it."""


def made_record(scan: Scan, number: int, *, beyond: bool = False) -> dict[str, Any]:
    """Return a record that sorts by its number.

    Args:
        scan: whose fields it has.
        number: from 1; also what makes its key.
        beyond: whether it lies beyond the high-water mark.

    Raises:
        NotExercisedError: the scan's facts contradict each other about its fields.
    """
    facts, name = scan.source, f"k-{number:05d}"
    if isinstance(facts, HttpFacts) and facts.record_field is not None:
        if scan.contract.key != (facts.record_field,):
            raise NotExercisedError(
                f"records are bare values kept as {facts.record_field}; expected it to be the key"
            )
        return {facts.record_field: name}
    made: Any = {"note": f"record {number}"}
    if scan.contract.partition_by is not None:
        made[scan.contract.partition_by] = PARTITIONS[number % len(PARTITIONS)]
    bound = facts.high_water_mark
    if bound is not None and bound.field is not None:
        made = put(made, _path(bound.field), MARK + number if beyond else number)
    if isinstance(facts, LastKeySource):
        for part in facts.next.after:
            made = put(made, part.field, _told_already(made, part.field) or name)
    for field in scan.contract.key:
        made = put(made, _path(field), _told_already(made, _path(field)) or name)
    return made


def key_of(scan: Scan, made: dict[str, Any]) -> Key:
    """Return the key of a record that was made up."""
    values = tuple(_told_already(made, _path(field)) for field in scan.contract.key)
    return values[0] if len(values) == 1 else values


def keys_of(scan: Scan, rows: Sequence[dict[str, Any]]) -> list[Key]:
    """Return the keys of records, in order."""
    return [key_of(scan, each) for each in rows]


def _path(field: str) -> FieldPath:
    return tuple(field.split("."))


def _told_already(made: Any, path: FieldPath) -> Any:
    for step in path:
        made = made.get(step) if isinstance(made, dict) else None
    return made
