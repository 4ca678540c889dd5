"""The order of a question's rows is found once, kept without a name, and never stale."""

import sqlite3
from contextlib import closing
from itertools import pairwise

import polars as pl
import pytest

from scan_pipeline.agents.access import Access
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.orders import KEPT, OrderName, Orders
from scan_pipeline.agents.queries import Query
from scan_pipeline.agents.serving import create_desk
from scan_pipeline.agents.viewing import Viewed
from scan_pipeline.stages.readers.conditions import Condition
from scan_pipeline_tests.agents.conftest import (
    Readers,
    failure,
    policy_of,
    readers_of,
    rows_of,
)

ROWS = 10_000


def name(number: int = 0) -> OrderName:
    return OrderName(receipt_id="sha256:0", view_digest="sha256:1", query_digest=str(number))


@pytest.mark.filterwarnings("error")
def test_rows_by_number_are_those_of_the_order_wherever_a_page_begins(tmp_path):
    """The file has no name, and neither question nor end of the process leaves one behind."""
    places = pl.DataFrame(
        {"_page": [n // 7 for n in range(ROWS)], "_position": [n % 7 for n in range(ROWS)]},
        schema={"_page": pl.Int64, "_position": pl.Int32},
    )
    found = []

    def find() -> pl.DataFrame:
        found.append(1)
        return places

    orders = Orders(tmp_path)

    def read(first: int, count: int, number: int = 0) -> list[tuple[int, int]]:
        read = orders.places(name(number), first=first, count=count, rows=ROWS, find=find)
        return list(read.iter_rows())

    for first, count in [(1, 1), (4_096, 2), (1, ROWS), (ROWS, 5), (ROWS + 1, 5), (4_097, 8_192)]:
        assert read(first, count) == list(places.slice(first - 1, count).iter_rows())
    assert len(found) == 1
    for number in range(1, KEPT + 1):
        read(1, 1, number)
    read(1, 1)
    assert len(found) == KEPT + 2  # the first one was dropped for the last, and found again
    assert [*tmp_path.iterdir()] == []


def test_order_of_other_rows_than_were_counted_is_refused(tmp_path):
    none = pl.DataFrame(schema={"_page": pl.Int64, "_position": pl.Int32})

    with pytest.raises(ReaderError) as told:
        Orders(tmp_path).places(name(), first=1, count=1, rows=3, find=lambda: none)

    assert (told.value.remedy, told.value.code) == ("restart", "rows_changed")


def test_disk_that_takes_no_order_is_a_failure_and_no_page(tmp_path):
    one = pl.DataFrame({"_page": [1], "_position": [0]})

    with pytest.raises(ReaderError) as told:
        Orders(tmp_path / "gone").places(name(), first=1, count=1, rows=1, find=lambda: one)

    assert (told.value.remedy, told.value.code) == ("retry", "order_not_kept")
    assert str(tmp_path) not in str(told.value)


def test_kept_place_of_a_row_that_is_not_seen_gives_no_row():
    """An order grants nothing: rows are read through the view as it is at the call."""
    frame = pl.LazyFrame(
        {"id": ["a", "b"], "_page": [1, 1], "_position": [0, 1], "_leaf_hash": [b"\1", b"\2"]}
    )

    def viewed(*rows: Condition) -> Viewed:
        access = Access(
            principal="ana",
            tenant=None,
            scan="things",
            view="part",
            noun="things",
            rows=rows,
            columns=None,
            hide=(),
            needs_one_of=(),
        )
        return Viewed(frame, access)

    places = viewed().places(Query())

    assert [row.values for row in viewed().rows(places)] == [{"id": "a"}, {"id": "b"}]
    with pytest.raises(ReaderError) as told:
        viewed(Condition(field="id", value="a")).rows(places)
    assert told.value.code == "rows_changed"


def test_record_that_was_delivered_again_is_one_row_and_read_where_it_was_first(bench, tmp_path):
    """A page reads its own rows: to tell the repeats anew for each would read all of them."""
    again = [b'{"id":"a","n":3}', b'{"id":"b","n":2}', b'{"id":"a","n":3}', b'{"id":"c","n":1}']
    edits = {"contract.delivery": "at_least_once", "contract.expect.count": 3}
    walked = bench.walk_records([again[:2], again[1:3], again[3:]], edits, total=3)
    readers = readers_of(walked, {**policy_of("things"), "limits": {"page_size": 2}}, tmp_path)

    async def asking(ask):
        opened = await ask("open_query", scan="things", order=[{"field": "n"}])
        return await rows_of(ask, opened), await ask(
            "read_record", handle=opened["result_handle"], row=3
        )

    rows, last = readers.ask(asking, who="eve")
    collection = readers.walked.collection.latest()

    assert [each["values"]["id"] for each in rows] == ["c", "b", "a"]
    assert last["values"] == {"id": "a", "n": 3}
    assert collection.frame().collect().height == 3
    assert collection.delivered().collect().height == 5


def test_pages_go_on_after_the_server_was_launched_again(readers):
    """The order is found again; a cursor that was bound to another row before it is refused."""
    order = [{"field": "region"}, {"field": "status", "descending": True}]

    async def opening(ask):
        opened = await ask("open_query", scan="customers", order=order)
        page = await ask("read_page", cursor=opened["first_cursor"])
        return opened, page

    def again() -> Readers:
        fresh = create_desk(
            readers.desk.workspace, find=lambda _: readers.walked.scan, policy=readers.desk.policy
        )
        return Readers(desk=fresh, walked=readers.walked, path=readers.path)

    opened, page = readers.ask(opening, who="eve")
    cursor = page["page"]["next_cursor"]
    rest = again().ask(lambda ask: rows_of(ask, {"first_cursor": cursor}), who="eve")
    items = [*page["page"]["items"], *rest]
    ranked = [(each["values"]["region"], each["values"]["status"]) for each in items]

    assert [each["row"] for each in items] == [*range(1, opened["summary"]["matching_count"] + 1)]
    assert len({each["values"]["customer_id"] for each in items}) == len(items) == 1_000
    assert all(
        one[0] < other[0] or (one[0] == other[0] and one[1] >= other[1])
        for one, other in pairwise(ranked)
    )

    with closing(sqlite3.connect(readers.folder / "ledger.sqlite")) as database, database:
        database.execute("update cursors set after_page = 7, after_position = 7")

    told = again().ask(lambda ask: ask("read_page", cursor=cursor), who="eve")
    assert failure(told) == ("restart", "rows_changed")
