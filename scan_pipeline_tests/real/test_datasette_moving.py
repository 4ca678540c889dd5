"""The same walk while another connection deletes and adds rows between its pages.

What is asserted of a walk is what a receipt may say, and no more: the test knows which rows were
there all along, the receipt cannot.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.unlock import unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import MET, Airports, Walked, Wire, walk
from scan_pipeline_tests.real.datasette_server import delete_airports, serving, write_airports

pytestmark = pytest.mark.long


class Table:
    """A served table of 1,000 airports whose rows come and go.

    Attributes:
        keys: the keys at the start, sorted, which is the order of the walk.
        url: where it is served.
    """

    def __init__(self, database: Path, airports: Airports, url: str) -> None:
        self._database, self._airports, self.url = database, airports, url
        self.keys = _first(airports)

    def add(self, *keys: str) -> None:
        like = self._airports[self.keys[0]]
        write_airports(self._database, [{**like, "icao": key} for key in keys])

    def delete(self, *keys: str) -> None:
        delete_airports(self._database, keys)

    def after(self, row: int, number: int) -> list[str]:
        """Return keys that do not exist yet and sort behind a row's."""
        return [f"{self.keys[row]}_{n}" for n in range(number)]


def _first(airports: Airports) -> list[str]:
    return sorted(airports)[:1000]


@pytest.fixture
def table(airports: Airports, tmp_path: Path) -> Iterator[Table]:
    database = tmp_path / "airports.db"
    write_airports(database, [airports[key] for key in _first(airports)])
    with serving(database) as url:
        yield Table(database, airports, url)


@pytest.fixture
def walk_it(
    table: Table, scan_of: Callable[..., Scan], workspace: Workspace
) -> Callable[[], Walked]:
    """Walk the table in ten pages of 100; whatever comes of it, the whole does not open."""

    def pages_of_100(raw: dict[str, Any]) -> None:
        raw["source"]["page_size"]["value"] = 100

    def walk_it() -> Walked:
        walked = walk(scan_of(table.url, pages_of_100), workspace)
        with pytest.raises(GateClosedError):
            unlock(walked.stored, walked.scan, workspace=workspace, at_least="corroborated")
        return walked

    return walk_it


def verdict(walked: Walked) -> tuple[str, str, bool]:
    receipt = walked.receipt
    return receipt.coverage_status, receipt.conclusion_scope, receipt.accepted


def codes(walked: Walked) -> set[str]:
    return {each.code for each in walked.receipt.findings.first}


def keys_met(walked: Walked) -> list[str]:
    return walked.met()["icao"].to_list()


def test_rows_deleted_and_added_ahead_leave_the_count_undecided(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    gone, come = table.keys[700:705], table.after(900, 3)
    wire.before[4] = lambda: (table.delete(*gone), table.add(*come))

    walked = walk_it()

    assert verdict(walked) == ("unknown", MET, True)
    assert codes(walked) == {"count_changed", "live_traversal", "no_denominator"}
    assert walked.expectation("source_count") == (None, 998, "not_evaluated")
    assert keys_met(walked) == sorted({*table.keys, *come} - {*gone})


def test_as_many_rows_added_as_deleted_behind_match_the_count_and_prove_nothing(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    """Every count is 1,000 and every key unique, and yet three rows that are there were not read.

    The receipt cannot know; that is why a live walk is never more than unknown.
    """
    gone, come = table.keys[10:13], table.after(50, 3)
    wire.before[4] = lambda: (table.delete(*gone), table.add(*come))

    walked = walk_it()

    assert walked.expectation("source_count") == (1000, 1000, "met")
    assert verdict(walked) == ("unknown", MET, True)
    assert codes(walked) == {"live_traversal"}
    assert keys_met(walked) == table.keys


def test_rows_whose_key_changes_match_the_count_and_prove_nothing(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    """One row moves ahead and is read twice, another moves behind and is not read at all."""
    twice, never = f"{table.keys[800]}_", f"{table.keys[20]}_"
    wire.before[3] = lambda: (table.delete(table.keys[150]), table.add(twice))
    wire.before[6] = lambda: (table.delete(table.keys[850]), table.add(never))

    walked = walk_it()

    assert walked.expectation("source_count") == (1000, 1000, "met")
    assert verdict(walked) == ("unknown", MET, True)
    assert keys_met(walked) == sorted({*table.keys, twice} - {table.keys[850]})


def test_rows_added_behind_as_many_as_are_deleted_ahead_fail_the_count(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    """The source counts 1,000 all along, and 995 were read: the evidence disagrees."""
    gone, come = table.keys[700:705], table.after(50, 5)
    wire.before[4] = lambda: (table.delete(*gone), table.add(*come))

    walked = walk_it()

    assert walked.expectation("source_count") == (1000, 995, "missed")
    assert verdict(walked) == ("failed", "observed_pages_only", False)
    with pytest.raises(GateClosedError, match="count missed"):
        walked.met()


def test_the_walk_goes_on_behind_a_row_that_is_gone(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    """Datasette's token is the last row's key and not a position."""
    wire.before[4] = lambda: table.delete(table.keys[299])

    walked = walk_it()

    assert verdict(walked) == ("unknown", MET, True)
    assert walked.expectation("source_count") == (None, 1000, "not_evaluated")
    assert keys_met(walked) == table.keys


def test_a_table_emptied_in_mid_walk_is_not_a_short_collection(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    wire.before[4] = lambda: table.delete(*table.keys)

    walked = walk_it()

    assert verdict(walked) == ("unknown", MET, True)
    assert codes(walked) == {"count_changed", "live_traversal", "no_denominator"}
    assert keys_met(walked) == table.keys[:300]


def test_a_row_that_is_added_and_read_counts_as_met(
    table: Table, walk_it: Callable[[], Walked], wire: Wire
) -> None:
    """It was not there when the walk began: met is not the same as present throughout."""
    come = table.after(950, 1)
    wire.before[10] = lambda: table.add(*come)

    walked = walk_it()

    assert verdict(walked) == ("unknown", MET, True)
    assert keys_met(walked) == sorted([*table.keys, *come])
