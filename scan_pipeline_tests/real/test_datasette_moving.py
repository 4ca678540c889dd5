"""The same walk while another connection deletes and adds rows between its pages."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.unlock import open_partial, unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import Airports, Wire
from scan_pipeline_tests.real.datasette_server import delete_airports, serving, write_airports

MET = "records_encountered_in_live_traversal"
PAGE = 100


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


def _first(airports: Airports) -> list[str]:
    return sorted(airports)[:1000]


@pytest.fixture
def table(airports: Airports, tmp_path: Path) -> Iterator[Table]:
    database = tmp_path / "airports.db"
    write_airports(database, [airports[key] for key in _first(airports)])
    with serving(database) as url:
        yield Table(database, airports, url)


@pytest.fixture
def walked(
    table: Table, scan_of: Callable[..., Scan], workspace: Workspace
) -> Callable[[], tuple[Receipt, Callable[[], list[str]]]]:
    """Walk the table; return the receipt, and what opens the keys that were met."""

    def smaller(raw: dict[str, Any]) -> None:
        raw["source"]["page_size"]["value"] = PAGE

    def walk() -> tuple[Receipt, Callable[[], list[str]]]:
        scan = scan_of(table.url, smaller)
        stored = run_scan(scan, workspace=workspace).stored
        with pytest.raises(GateClosedError):
            unlock(stored, scan, workspace=workspace, at_least="corroborated")

        def keys() -> list[str]:
            opened = open_partial(stored, scan, workspace=workspace, accept=MET)
            return opened.labelled_frame().sort("icao").collect()["icao"].to_list()

        return stored.receipt, keys

    return walk


Walked = Callable[[], tuple[Receipt, Callable[[], list[str]]]]


def _count(receipt: Receipt) -> tuple[Any, Any, str]:
    count = next(each for each in receipt.expectations if each.name == "source_count")
    return count.expected, count.observed, count.result


def test_rows_deleted_and_added_ahead_leave_the_count_undecided(
    table: Table, walked: Walked, wire: Wire
) -> None:
    gone, come = table.keys[700:705], [f"{table.keys[900]}_{n}" for n in range(3)]

    def change() -> None:
        table.delete(*gone)
        table.add(*come)

    wire.before[4] = change

    receipt, met = walked()

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert receipt.accepted
    assert _count(receipt) == (None, 998, "not_evaluated")
    assert {each.code for each in receipt.findings.first} >= {"count_changed", "live_traversal"}
    assert met() == sorted({*table.keys, *come} - {*gone})


def test_rows_deleted_and_added_behind_are_not_missed_by_the_count_and_still_unknown(
    table: Table, walked: Walked, wire: Wire
) -> None:
    """The count matches on every page and every key is unique, and yet three rows were not read."""
    gone, come = table.keys[10:13], [f"{table.keys[50]}_{n}" for n in range(3)]

    def change() -> None:
        table.delete(*gone)
        table.add(*come)

    wire.before[4] = change

    receipt, met = walked()

    assert _count(receipt) == (1000, 1000, "met")
    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert receipt.duplicate_ids == receipt.conflicting_ids == 0
    assert met() == table.keys
    assert not set(come) & set(met())


def test_rows_added_behind_as_many_as_are_deleted_ahead_fail_the_count(
    table: Table, walked: Walked, wire: Wire
) -> None:
    """The source counts 1,000 all along; 995 were read: the evidence disagrees."""
    gone, come = table.keys[700:705], [f"{table.keys[50]}_{n}" for n in range(5)]

    def change() -> None:
        table.delete(*gone)
        table.add(*come)

    wire.before[4] = change

    receipt, met = walked()

    assert _count(receipt) == (1000, 995, "missed")
    assert (receipt.coverage_status, receipt.accepted) == ("failed", False)
    with pytest.raises(GateClosedError, match="count missed"):
        met()


def test_a_row_that_moves_behind_and_ahead_between_pages_is_two_records_or_none(
    table: Table, walked: Walked, wire: Wire
) -> None:
    """A key that changes is another record to every walk; nothing of it may be called whole."""
    wire.before[3] = lambda: (table.delete(table.keys[150]), table.add(f"{table.keys[800]}_"))
    wire.before[6] = lambda: (table.delete(table.keys[850]), table.add(f"{table.keys[20]}_"))

    receipt, met = walked()

    assert (receipt.coverage_status, receipt.accepted) == ("failed", False) or (
        (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    )
    assert receipt.unique_ids_observed == 1000


def test_the_cursor_s_own_row_may_be_deleted(table: Table, walked: Walked, wire: Wire) -> None:
    """Datasette's token is a key, not a position: the walk goes on behind a row that is gone."""
    wire.before[4] = lambda: table.delete(table.keys[299])

    receipt, met = walked()

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert met() == table.keys
    assert _count(receipt) == (None, 1000, "not_evaluated")


def test_a_table_emptied_in_mid_walk_is_not_a_short_collection(
    table: Table, walked: Walked, wire: Wire
) -> None:
    wire.before[4] = lambda: table.delete(*table.keys)

    receipt, met = walked()

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert {each.code for each in receipt.findings.first} >= {"count_changed", "live_traversal"}
    assert met() == table.keys[:300]
