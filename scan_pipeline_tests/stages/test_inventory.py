"""Scans that are read together in plain Python: one night of each, or none."""

from datetime import timedelta
from typing import Any

import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.stages.inventory import Inventory, night_of, open_inventory
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.conftest import laid_down


@pytest.fixture
def members(bench: Any, things: Any) -> Any:
    """Two scans of one night, and a clock that can be moved."""
    walked = bench.walk_records([[b'{"id":"a","n":1}']])
    other = things({"name": "others", "contract.accept.nonconforming": 1})
    bench.clock.now = bench.clock.now.replace(microsecond=0, second=0, minute=0)
    place = bench.workspace(
        project=walked.workspace.project, inner=laid_down([[b'{"id":"a","n":2}']])
    )
    night = run_scan(other, workspace=place)
    assert night.stored.receipt.scan_generation == walked.generation
    return walked, other, place


def test_newest_night_that_opens_for_all_is_read(bench: Any, members: Any) -> None:
    """A night of one scan alone is told and passed over; what is too old or too far apart, shut."""
    walked, other, place = members
    together = Inventory(
        {"one": walked.collection, "two": walked.collection.__class__(other, workspace=place)}
    )
    first = together.latest()
    bench.clock.now += timedelta(days=1)
    run_scan(walked.scan, workspace=walked.workspace)
    found = together.latest()

    assert (first.night, first.newer) == (walked.generation, ())
    assert {name: each.frame().collect()["n"][0] for name, each in found.items()} == {
        "one": 1,
        "two": 2,
    }
    assert found.night == walked.generation
    assert found.newer[0][0] > found.night
    assert "others" in found.newer[0][1]
    assert "does not open" in found.word()
    assert found.weakest == ("verified", "all_records_in_snapshot")
    assert timedelta() < found.skew < timedelta(minutes=1)
    with pytest.raises(GateClosedError, match="expected within"):
        together.night(found.night, max_skew=timedelta(0))
    young = walked.collection.__class__(other, workspace=place, max_age=timedelta(hours=1))
    with pytest.raises(GateClosedError, match="expected at most"):
        Inventory({"two": young}).latest()
    with pytest.raises(GateClosedError, match="no receipt of this night"):
        together.night("20200101T000000Z")


def test_newest_attempt_that_opens_stands_for_its_scan(members: Any, things: Any) -> None:
    """A member that was judged again is read under its new name, or refuses all of them."""
    walked, other, place = members
    collection = walked.collection.__class__(other, workspace=place)
    together = Inventory({"one": walked.collection, "two": collection})
    again = restage(other, walked.generation, workspace=place).receipt.scan_generation
    found = together.night(walked.generation)
    failing = things({"name": "others", "contract.expect": {"count": 9}})
    restage(failing, again, workspace=place)

    assert found.generation == f"{walked.generation}.2" == again
    assert found["one"].receipt.scan_generation == walked.generation
    assert night_of(again) == found.night
    assert together.standing(found.night).keys() == {"one"}
    with pytest.raises(GateClosedError, match=r"others .*\.3: coverage is failed"):
        together.latest()
    with pytest.raises(ContractError, match="expected one at least"):
        Inventory({})
    with pytest.raises(ContractError):
        open_inventory({"one": "nowhere"}, lake=str(place.project.lake))


def test_attempt_that_judges_older_pages_again_is_not_the_newest(bench: Any, members: Any) -> None:
    """A clock that was set back makes nights attempts of one name; the pages say which is newer."""
    walked, other, place = members
    bench.clock.now -= timedelta(days=2)
    newer = run_scan(other, workspace=place).stored.receipt.scan_generation
    again = restage(other, walked.generation, workspace=place).receipt.scan_generation
    collection = walked.collection.__class__(other, workspace=place)

    found = Inventory({"two": collection}).night(walked.generation)

    assert (newer, again) == (f"{walked.generation}.2", f"{walked.generation}.3")
    assert found["two"].receipt.scan_generation == newer
