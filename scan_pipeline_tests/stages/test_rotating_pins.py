"""Whether every request named the version as the answer before did, by the stored events alone."""

from collections.abc import Callable

import pytest

from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.reconciling.evidence import walk_evidence
from scan_pipeline.store.events import Event, EventLog
from scan_pipeline_tests.core.test_walk import AT, page

ROTATES = {"source.snapshot": {"at": "version", "send_as": "version", "rotates": True}}
PINNED = {"source.snapshot": {"at": "version", "send_as": "version"}}


def events(*names: tuple[str | None, str | None]) -> list[Event]:
    """Pages by the name each was asked under, and the one it reported."""
    log = EventLog(last=None)
    found = [log.open({"before": {}}, at=AT)]
    for number, (sent, reported) in enumerate(names):
        asked = page(number, pin=reported)
        moved = type(asked.position)(token=str(number), pin=sent)
        found.append(log.page(page(number, pin=reported, position=moved), items=b"\0" * 32))
    return found


@pytest.mark.parametrize(
    ("names", "named"),
    [
        ([(None, "a"), ("a", "a"), ("a", "a")], True),
        ([(None, "a"), ("a", "b"), ("b", "c")], True),
        ([(None, "a"), ("a", None), ("a", "b"), ("b", None)], True),
        ([(None, "a"), ("a", "b"), ("a", "b")], False),
        ([(None, "a"), (None, "b"), ("b", "b")], False),
        ([(None, "a"), ("b", "b")], False),
    ],
)
def test_newest_name_must_be_sent_where_names_rotate(
    things: Callable[..., Scan], names: list[tuple[str | None, str | None]], named: bool
) -> None:
    evidence = walk_evidence(things(ROTATES), events(*names))

    assert evidence.pin.sent_on_every_request is named
    assert evidence.pin.version == "a"


def test_first_name_must_be_sent_where_they_do_not(things: Callable[..., Scan]) -> None:
    evidence = walk_evidence(things(PINNED), events((None, "a"), ("a", "b"), ("b", "b")))

    assert not evidence.pin.sent_on_every_request
