"""Tables of SQLite: what holds them still, what may move, and what each walk may claim."""

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace

LIVE = "records_encountered_in_live_traversal"

FACTS: dict[str, Any] = {
    "name": "items",
    "source": {"protocol": "sql", "table": "items", "order": ["id"], "page_size": 2},
    "contract": {"key": ["id"], "consistency": "snapshot"},
}

PAGE_BY_PAGE: dict[str, Any] = {"source.snapshot": None, "contract.consistency": "live"}
"""Each page in a transaction of its own, and no claim beyond that."""


@dataclass
class Database:
    """A SQLite file, and what a second connection does to it."""

    path: Path

    @property
    def address(self) -> str:
        return f"sqlite:///{self.path}"

    def run(self, *statements: str | tuple[str, Sequence[Any]]) -> None:
        """Run statements from a connection of their own; committed on return."""
        with closing(sqlite3.connect(self.path, timeout=0)) as connection, connection:
            for each in statements:
                connection.execute(*((each,) if isinstance(each, str) else each))


@dataclass
class Walk:
    """A scan that was run once, and where."""

    scan: Scan
    place: Workspace
    night: Night

    @property
    def receipt(self) -> Receipt:
        return self.night.stored.receipt

    @property
    def verdict(self) -> tuple[str, str]:
        return self.receipt.coverage_status, self.receipt.conclusion_scope

    @property
    def codes(self) -> set[str]:
        return {f.code for f in self.receipt.findings.first if f.severity != "note"}

    @property
    def collection(self) -> Collection:
        return Collection(self.scan, workspace=self.place)

    def pages(self, field: str = "id") -> list[list[Any]]:
        """The values of a field on each page that was not empty, from the evidence."""
        source = self.place.source(self.scan)
        store = self.place.store(self.scan.name, self.receipt.scan_generation)
        pages = [source.records(body) for _, body in store.bodies()]
        return [[json.loads(each)[field] for each in page] for page in pages if page]

    def ids(self, field: str = "id") -> list[Any]:
        return [each for page in self.pages(field) for each in page]


Edit = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
Walker = Callable[..., Walk]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Items 1 to 6, each of the rank of its number."""
    found = Database(tmp_path / "items.db")
    found.run(
        "PRAGMA journal_mode=WAL",
        "CREATE TABLE items(id INTEGER PRIMARY KEY, rank INTEGER)",
        *(("INSERT INTO items VALUES (?, ?)", (number, number)) for number in range(1, 7)),
    )
    return found


@pytest.fixture
def walk(bench: Any, database: Database, edit: Edit) -> Walker:
    """Run the scan, edited; with what another connection does after the first page."""

    def run(edits: Mapping[str, Any] | None = None, *, after_page_1: Sequence[Any] = ()) -> Walk:
        scan = scan_of(database, edit, edits or {})
        place = bench.workspace()

        def progress(figures: Mapping[str, Any]) -> None:
            if figures["pages"] == 1:
                database.run(*after_page_1)

        night = run_scan(scan, workspace=place, progress=progress)
        return Walk(scan=scan, place=place, night=night)

    return run


def scan_of(database: Database, edit: Edit, edits: Mapping[str, Any]) -> Scan:
    return parse_scan(edit(FACTS, {"source.database": database.address, **edits}))


# Four ways in which a source moves under a walk; the comment says what the walk itself brings.

DELETED = ("DELETE FROM items WHERE id = 1",)
MOVED = ("UPDATE items SET rank = 0 WHERE id = 5",)
BEYOND = ("DELETE FROM items WHERE id = 5", "INSERT INTO items VALUES (7, 7)")

OFFSET = {"source.advance": "offset"}
BY_RANK = {"source.order": ["rank", "id"]}
BOUNDED = {"source.high_water_mark": {"field": "id"}, "contract.consistency": "high_water_mark"}


@pytest.mark.parametrize(
    ("edits", "elsewhere", "ids", "judged"),
    [
        pytest.param(
            # Rows shift left under the offset: 3 is passed over, and no finding says so.
            {**PAGE_BY_PAGE, **OFFSET},
            DELETED,
            [1, 2, 4, 5, 6],
            ("unknown", {"live_traversal", "no_denominator", "count_changed"}),
            id="offset-deletion",
        ),
        pytest.param(
            # The key after the last one is where it was.
            PAGE_BY_PAGE,
            DELETED,
            [1, 2, 3, 4, 5, 6],
            ("unknown", {"live_traversal", "no_denominator", "count_changed"}),
            id="keyset-deletion",
        ),
        pytest.param(
            # 5 moves behind the position; the count stands still and shows it.
            {**PAGE_BY_PAGE, **BY_RANK},
            MOVED,
            [1, 2, 3, 4, 6],
            ("failed", {"live_traversal", "count_missed"}),
            id="mutable-key",
        ),
        pytest.param(
            # The same, and nothing to show it.
            {**PAGE_BY_PAGE, **BY_RANK, "source.count": None},
            MOVED,
            [1, 2, 3, 4, 6],
            ("unknown", {"live_traversal", "no_denominator"}),
            id="mutable-key-uncounted",
        ),
        pytest.param(
            # A bound keeps 7 away and cannot keep 5: the rows were not append-only.
            {**PAGE_BY_PAGE, **BOUNDED},
            BEYOND,
            [1, 2, 3, 4, 6],
            ("failed", {"count_changed", "count_missed"}),
            id="high-water-mark-deletion",
        ),
        pytest.param(
            {**PAGE_BY_PAGE, **BOUNDED, "source.count": None},
            BEYOND,
            [1, 2, 3, 4, 6],
            ("unknown", {"no_denominator"}),
            id="high-water-mark-deletion-uncounted",
        ),
    ],
)
def test_rows_that_move_between_pages_are_never_called_whole(
    walk: Walker,
    edits: dict[str, Any],
    elsewhere: Sequence[str],
    ids: list[int],
    judged: tuple[str, set[str]],
) -> None:
    walked = walk(edits, after_page_1=elsewhere)

    assert walked.ids() == ids
    assert walked.receipt.traversal == "finished"
    assert (walked.receipt.coverage_status, walked.codes) == judged
    with pytest.raises(GateClosedError):
        walked.collection.latest()


@pytest.mark.parametrize(
    ("edits", "elsewhere"),
    [
        pytest.param(OFFSET, DELETED, id="offset-deletion"),
        pytest.param({}, DELETED, id="keyset-deletion"),
        pytest.param(BY_RANK, MOVED, id="mutable-key"),
        pytest.param({}, BEYOND, id="deletion-and-insertion"),
    ],
)
def test_one_transaction_sees_none_of_it(
    walk: Walker, edits: dict[str, Any], elsewhere: Sequence[str]
) -> None:
    walked = walk(edits, after_page_1=elsewhere)

    assert walked.ids() == [1, 2, 3, 4, 5, 6]
    assert walked.verdict == ("verified", "all_records_in_snapshot")
    assert walked.codes == set()


def test_append_only_rows_are_whole_up_to_the_bound(walk: Walker) -> None:
    walked = walk({**PAGE_BY_PAGE, **BOUNDED}, after_page_1=("INSERT INTO items VALUES (7, 7)",))

    assert walked.ids() == [1, 2, 3, 4, 5, 6]
    assert walked.verdict == ("verified", "all_records_up_to_high_water_mark")
    assert walked.receipt.high_water_mark == "6"
    believed = {each.name: each.basis for each in walked.receipt.assumptions}
    assert believed["append_only"] == "user_declared"


def test_empty_page_in_the_middle_does_not_end_a_walk(
    bench: Any, database: Database, edit: Edit
) -> None:
    """A server hands out windows of a table by token; one window holds nothing any more."""
    database.run("DELETE FROM items WHERE id IN (3, 4)")

    def answer(request: httpx2.Request) -> httpx2.Response:
        start = int(request.url.params.get("token", "0"))
        with closing(sqlite3.connect(database.path)) as connection:
            rows = connection.execute(
                "SELECT id FROM items WHERE id > ? AND id <= ? ORDER BY id", (start, start + 2)
            ).fetchall()
        following = None if start + 2 >= 6 else str(start + 2)
        return httpx2.Response(200, json={"rows": [{"id": n} for (n,) in rows], "next": following})

    source = {
        "protocol": "page_token",
        "url": "http://windows.test/items",
        "records_at": "rows",
        "next": {"at": "next", "send_as": "token", "ends_when": [{"is": "null"}]},
    }
    scan = parse_scan(edit(FACTS, {"source": source, "contract.consistency": "live"}))
    place = bench.workspace(inner=httpx2.MockTransport(answer))

    walked = Walk(scan=scan, place=place, night=run_scan(scan, workspace=place))

    assert walked.ids() == [1, 2, 5, 6]
    assert (walked.receipt.pages_observed, walked.receipt.empty_pages) == (3, 1)
    assert walked.verdict == ("unknown", LIVE)


# Cases of others, replayed: the table is made, moved where the case says, and walked.


CASES = Path(__file__).parents[1] / "cases"


def case(name: str, *, of: str) -> dict[str, Any]:
    lines = (CASES / f"{of}_cases.jsonl").read_text(encoding="utf-8").splitlines()
    return next(each for each in map(json.loads, lines) if each["id"] == name)


def test_case_c045_offset_over_a_column_that_rows_keep_updating(
    walk: Walker, database: Database
) -> None:
    told = case("C045", of="field")
    first, moved, second, last = told["scenario"]["responses"]
    update = moved["mutation"]
    database.run(
        "DROP TABLE items",
        "CREATE TABLE items(id TEXT PRIMARY KEY, u INTEGER)",
        *(
            ("INSERT INTO items VALUES (?, ?)", (each, int(each)))
            for each in told["scenario"]["truth"]
        ),
    )
    edits = {"source.order": told["scenario"]["config"]["order"]}
    elsewhere = (("UPDATE items SET u = ? WHERE id = ?", (update["set"]["u"], update["id"])),)

    walked = walk({**PAGE_BY_PAGE, **OFFSET, **edits}, after_page_1=elsewhere)

    sent = [[row["id"] for row in each["body"]["rows"]] for each in (first, second)]
    assert walked.pages() == sent
    assert last["body"]["rows"] == []
    assert sorted(set(walked.ids())) == told["expected"]["ids"]
    assert walked.receipt.conflicting_ids == told["expected"]["duplicates"]
    assert walked.receipt.coverage_status == "failed"
    with pytest.raises(GateClosedError):
        walked.collection.partial(walked.receipt.scan_generation, accept=LIVE)


def test_case_c051_rows_stamped_before_the_run_and_visible_after_it(
    walk: Walker, database: Database
) -> None:
    told = case("C051", of="field")
    first, late, second = told["scenario"]["responses"]
    database.run(
        "DROP TABLE items",
        "CREATE TABLE items(id TEXT PRIMARY KEY, t INTEGER)",
        *(("INSERT INTO items VALUES (:id, :t)", row) for row in first["body"]["rows"]),
    )
    committed = late["mutation"]
    elsewhere = (("INSERT INTO items VALUES (?, ?)", (committed["id"], committed["t"])),)
    by_stamp = {"source.order": ["t", "id"]}

    walked = walk({**PAGE_BY_PAGE, **by_stamp}, after_page_1=elsewhere)

    assert walked.ids() == told["expected"]["ids"]
    assert second["body"]["rows"] == []
    assert walked.verdict == ("unknown", LIVE)
    with pytest.raises(GateClosedError):
        walked.collection.latest()


def test_case_c051_is_seen_by_a_bounded_count(walk: Walker, database: Database) -> None:
    """A stamp was declared to become visible in order, and did not."""
    database.run("DELETE FROM items WHERE id = 2")
    late = (("INSERT INTO items VALUES (?, ?)", (2, 2)),)

    walked = walk({**PAGE_BY_PAGE, **BOUNDED, "source.page_size": 3}, after_page_1=late)

    assert "count_changed" in walked.codes
    assert walked.receipt.coverage_status == "failed"


def test_case_keyset_sql_tiebreak_keeps_a_tie_across_pages(
    walk: Walker, database: Database
) -> None:
    told = case("keyset-sql-tiebreak", of="peer")
    rows = [row for page in told["pages"] for row in page["body"]]
    database.run(
        "DROP TABLE items",
        "CREATE TABLE items(id INTEGER PRIMARY KEY, updated_at INTEGER)",
        *(("INSERT INTO items VALUES (:id, :updated_at)", row) for row in rows),
    )

    walked = walk({"source.order": told["config"]["order"]})

    assert walked.ids() == told["expected"]["ids"]
    assert [len(page) for page in walked.pages()] == [len(p["body"]) for p in told["pages"][:2]]
    assert walked.receipt.pages_observed == len(told["pages"])
    assert walked.receipt.coverage_status == "verified"


# What is checked before the first page.


def test_walk_without_a_tie_breaker_is_refused(walk: Walker, database: Database) -> None:
    database.run("UPDATE items SET rank = 3 WHERE id = 4")

    with pytest.raises(ContractError, match="equal rank; expected an order in which no two rows"):
        walk({"source.order": ["rank"]})


@pytest.mark.parametrize(
    "index",
    [
        pytest.param("CREATE UNIQUE INDEX u ON items(rank) WHERE id < 4", id="partial"),
        pytest.param("CREATE UNIQUE INDEX u ON items(rank, -id)", id="expression"),
        pytest.param("CREATE INDEX u ON items(rank)", id="not-unique"),
    ],
)
def test_index_that_says_less_than_unique_is_not_believed(
    walk: Walker, database: Database, index: str
) -> None:
    database.run(index, "UPDATE items SET rank = 5 WHERE id = 4")

    with pytest.raises(ContractError, match="several rows"):
        walk({"source.order": ["rank"]})


def test_order_that_happens_to_be_unique_needs_no_index(walk: Walker) -> None:
    assert walk({"source.order": ["rank"]}).receipt.coverage_status == "verified"


def test_null_in_the_order_is_refused(walk: Walker, database: Database) -> None:
    database.run("UPDATE items SET rank = NULL WHERE id = 4")

    with pytest.raises(ContractError, match="nulls in rank"):
        walk(BY_RANK)


def test_null_that_the_filter_keeps_out_does_no_harm(walk: Walker, database: Database) -> None:
    database.run(
        "ALTER TABLE items ADD COLUMN kept INTEGER DEFAULT 1",
        "UPDATE items SET rank = NULL, kept = 0 WHERE id = 4",
    )

    walked = walk({**BY_RANK, "source.where": {"kept": True}})

    assert walked.ids() == [1, 2, 3, 5, 6]
    assert walked.receipt.coverage_status == "verified"


@pytest.mark.parametrize("value", ["text", b"blob", 1.5])
def test_order_of_several_storage_classes_is_refused(
    walk: Walker, database: Database, value: str | bytes | float
) -> None:
    database.run(("UPDATE items SET rank = ? WHERE id = 4", (value,)))

    with pytest.raises(ContractError, match="of one storage class in all rows"):
        walk(BY_RANK)


def test_texts_order_by_their_bytes_whatever_the_column_says(
    walk: Walker, database: Database
) -> None:
    """Under NOCASE `a` and `A` are one place, and a page that ends between them loses one."""
    names = ["B", "a", "A", "b", "é", "z"]
    database.run(
        "DROP TABLE items",
        "CREATE TABLE items(id TEXT COLLATE NOCASE)",
        "CREATE UNIQUE INDEX by_bytes ON items(id COLLATE BINARY)",
        *(("INSERT INTO items VALUES (?)", (name,)) for name in names),
    )

    walked = walk({"source.page_size": 1})

    assert walked.ids() == sorted(names)
    assert walked.receipt.coverage_status == "verified"


def test_rollback_journal_is_refused_where_a_walk_would_hold_up_writers(
    walk: Walker, database: Database
) -> None:
    database.run("PRAGMA journal_mode=DELETE")

    with pytest.raises(ContractError, match="journal mode delete"):
        walk()
    assert walk(PAGE_BY_PAGE).receipt.traversal == "finished"


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        pytest.param({"source.table": "nothing"}, "no table nothing", id="table"),
        pytest.param({"source.order": ["nothing"]}, "no column nothing", id="order"),
        pytest.param({"source.columns": ["id", "x", "y"]}, "no column x, y", id="columns"),
        pytest.param({"source.where": {"nothing": 1}}, "no column nothing", id="where"),
    ],
)
def test_what_is_not_there_is_named(walk: Walker, edits: dict[str, Any], told: str) -> None:
    with pytest.raises(ContractError, match=told):
        walk(edits)


def test_file_that_is_not_there_leaves_a_receipt(walk: Walker, tmp_path: Path) -> None:
    walked = walk({"source.database": f"sqlite:///{tmp_path / 'elsewhere.db'}"})

    assert (walked.receipt.traversal, walked.receipt.stop_reason) == (
        "interrupted",
        "source_unavailable",
    )
    assert not (tmp_path / "elsewhere.db").exists()


def test_walk_that_broke_off_begins_again_since_its_transaction_is_gone(
    bench: Any, database: Database, edit: Edit
) -> None:
    scan, place = scan_of(database, edit, {"operation.commit_pages": 1}), bench.workspace()

    def power_cut(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == 2:
            time.sleep(0.5)  # a page is durable by then; one that is not would begin from nothing
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        run_scan(scan, workspace=place, progress=power_cut)
    database.run("INSERT INTO items VALUES (7, 7)")
    night = run_scan(scan, workspace=place)

    (broken,) = (stored.receipt for stored in night.earlier)
    assert (broken.stop_reason, broken.coverage_status) == ("continuation_consumed", "unknown")
    receipt = night.stored.receipt
    assert receipt.restart_of == broken.scan_generation
    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", 7)


def test_page_by_page_walk_is_taken_up_where_it_broke_off(
    bench: Any, database: Database, edit: Edit
) -> None:
    edits = {**PAGE_BY_PAGE, "operation.commit_pages": 1}
    scan, place = scan_of(database, edit, edits), bench.workspace()

    def power_cut(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == 2:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        run_scan(scan, workspace=place, progress=power_cut)
    night = run_scan(scan, workspace=place)

    walked = Walk(scan=scan, place=place, night=night)
    assert night.earlier == ()
    assert walked.ids() == [1, 2, 3, 4, 5, 6]


# How values travel.


def test_values_travel_exactly(walk: Walker, database: Database) -> None:
    invalid = "CAST(x'ff41' AS TEXT)"
    database.run(
        "DROP TABLE items",
        'CREATE TABLE items(id INTEGER PRIMARY KEY, value, "we:ird %s ""name""" TEXT)',
        (
            "INSERT INTO items VALUES (1, ?, ?), (2, ?, NULL), (3, ?, 'x'), (4, ?, ''), (5, ?, '')",
            (2**63 - 1, "Ünï\n\x00", 0.1, b"\x00\xff", float("inf"), None),
        ),
        f"INSERT INTO items VALUES (6, {invalid}, 'é')",
    )

    walked = walk({"source.page_size": 100})

    store = walked.place.store("items", walked.receipt.scan_generation)
    (_, body), *_ = store.bodies()
    lines = [json.loads(line) for line in body.split(b"\n")]
    assert [line["value"] for line in lines] == [
        2**63 - 1, 0.1, "AP8=", "Infinity", None, {"base64": "/0E="},
    ]  # fmt: skip
    assert [line['we:ird %s "name"'] for line in lines[:2]] == ["Ünï\n\x00", None]
    assert walked.receipt.coverage_status == "verified"
    assert walked.receipt.merkle.leaf_encoding == "canonical-json/v1"


def test_only_the_columns_asked_for_are_read(walk: Walker, database: Database) -> None:
    """The order may be of columns that are not among them."""
    database.run("ALTER TABLE items ADD COLUMN secret TEXT DEFAULT 'hidden'")

    walked = walk({**BY_RANK, "source.columns": ["id"]})

    (_, body), *_ = walked.place.store("items", walked.receipt.scan_generation).bodies()
    assert body == b'{"id":1}\n{"id":2}'
    assert walked.ids() == [1, 2, 3, 4, 5, 6]


def test_counts_by_partition_come_from_the_same_transaction(
    walk: Walker, database: Database
) -> None:
    database.run("ALTER TABLE items ADD COLUMN half TEXT", "UPDATE items SET half = id > 3")

    walked = walk(
        {
            "source.partition_counts": "half",
            "contract.partition_by": "half",
            "contract.expect": {"partition_counts": "source"},
        },
        after_page_1=("UPDATE items SET half = '1'",),
    )

    met = {each.name: each.result for each in walked.receipt.expectations}
    assert met == {"source_count": "met", "partition_counts": "met"}
    assert walked.receipt.merkle.partitions == 2


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4])
def test_empty_page_ends_a_walk_of_any_size(walk: Walker, database: Database, rows: int) -> None:
    database.run(("DELETE FROM items WHERE id > ?", (rows,)))

    walked = walk()

    assert (walked.receipt.coverage_status, len(walked.ids())) == ("verified", rows)
    assert walked.receipt.terminal_evidence is not None
    assert walked.receipt.terminal_evidence.signal == "empty_page"


def test_audit_agrees_with_the_receipt(walk: Walker) -> None:
    walked = walk()

    audit = Audit("items", walked.receipt.scan_generation, workspace=walked.place).run()

    assert audit.agrees
