"""Pages of a question, joined, are its rows: each once, in order, whatever the values."""

import json
from itertools import pairwise

import pytest

from scan_pipeline_tests.agents.conftest import failure, rows_of

pytestmark = pytest.mark.long

COLUMNS = [
    {"name": "id", "type": "string", "nullable": False},
    {"name": "n", "type": "int64"},
    {"name": "x", "type": "float64"},
    {"name": "d", "type": "decimal"},
    {"name": "t", "type": "timestamp"},
    {"name": "b", "type": "bool"},
    {"name": "s", "type": "string"},
]
TYPED = {"record_schema": COLUMNS}


def laid(count, **columns):
    """Return one page of records, ids counted, other columns by cycling through given values."""
    rows = []
    for number in range(count):
        row = {"id": f"r-{number:04}"}
        for name in ("n", "x", "d", "t", "b", "s"):
            values = columns.get(name, [None])
            row[name] = values[number % len(values)]
        rows.append(json.dumps(row).encode())
    return [rows[begin : begin + 7] for begin in range(0, count, 7)] or [[]]


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 21])
def test_zero_rows_one_exactly_a_page_and_one_over(things, count):
    readers = things(laid(count), TYPED, limits={"page_size": 10})

    async def asking(ask):
        opened = await ask("open_query", scan="things")
        pages, cursor = [], opened["first_cursor"]
        while cursor:
            pages.append(await ask("read_page", cursor=cursor))
            cursor = pages[-1]["page"]["next_cursor"]
        return opened, pages, await ask("conclude", handle=opened["result_handle"])

    opened, pages, concluded = readers.ask(asking, who="eve")

    assert opened["summary"] == {
        "matching_count": count,
        "population": count,
        "returned_count": 0,
        "has_more": count > 0,
    }
    assert [each["summary"]["returned_count"] for each in pages] == [
        *[10] * (count // 10),
        *([count % 10] if count % 10 else []),
    ]
    assert [each["summary"]["has_more"] for each in pages] == [
        number + 1 < len(pages) for number in range(len(pages))
    ]
    assert [each["page"]["number"] for each in pages] == [*range(1, len(pages) + 1)]
    assert concluded["claim"] == ("verified_match" if count else "complete_no_match")


VALUES = {
    "n": [3, None, 9_007_199_254_740_993, 9_007_199_254_740_992, -1, 3],
    "x": [0.5, None, -0.0, 0.0, 1e300, 0.1],
    "d": ["1.5", None, "1.500000001", "12345678901234567890.123456789", "-2", "1.5"],
    "t": [
        "2026-01-01T00:00:00Z",
        None,
        "2026-01-01T00:00:00.000001Z",
        "2025-12-31T23:00:00-02:00",
        "2026-01-01T00:00:00Z",
    ],
    "b": [True, None, False],
    "s": ["b", None, "a", "", "ä", "b"],
}


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("field", sorted(VALUES))
def test_ties_and_nulls_in_the_order_lose_and_double_no_row(things, field, down):
    """Whatever the page borders fall on, pages of four are the one page of all."""
    readers = things(laid(23, **VALUES), TYPED)
    order = [{"field": field, "descending": down}, {"field": field}]

    async def asking(ask):
        opened = await ask("open_query", scan="things", order=order)
        at_once = await rows_of(ask, opened)
        return at_once, await rows_of(ask, opened, page_size=4), await rows_of(ask, opened, 1)

    at_once, by_four, by_one = readers.ask(asking, who="eve")
    values = [each["values"][field] for each in at_once]

    assert len({each["values"]["id"] for each in at_once}) == 23
    assert by_four == by_one == at_once
    nulls = values.count(None)
    assert nulls > 0
    assert values[-nulls:] == [None] * nulls


def test_ties_in_two_fields_of_other_directions_keep_the_walks_order(things):
    readers = things(laid(30, b=[True, False, None], s=["x", "y"]), TYPED)
    order = [{"field": "b", "descending": True}, {"field": "s"}]

    async def asking(ask):
        return await rows_of(ask, await ask("open_query", scan="things", order=order), page_size=3)

    rows = [each["values"] for each in readers.ask(asking, who="eve")]
    ranked = [({True: 0, False: 1, None: 2}[row["b"]], row["s"], row["id"]) for row in rows]

    assert len(rows) == 30
    assert all(one < other for one, other in pairwise(ranked))


@pytest.mark.parametrize(
    ("size", "told"),
    [(0, "page_size_unfit"), (-5, "page_size_unfit"), (10**30, None), (7, None)],
)
def test_page_size_narrows_and_never_widens(readers, size, told):
    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        return await ask("read_page", cursor=opened["first_cursor"], page_size=size)

    answer = readers.ask(asking)

    if told:
        assert failure(answer) == ("narrow", told)
    else:
        assert answer["summary"]["returned_count"] == min(size, 50)


def test_row_larger_than_a_page_is_named_with_its_size_and_read_in_full(things):
    rows = laid(3, s=["short", "x" * 9_000])
    readers = things(rows, TYPED, limits={"response_bytes": 6_000})

    async def asking(ask):
        opened = await ask("open_query", scan="things")
        items = await rows_of(ask, opened)
        full = await ask("read_record", handle=opened["result_handle"], row=2)
        return items, full

    items, full = readers.ask(asking, who="eve")

    assert [each["row"] for each in items] == [1, 2, 3]
    assert items[1]["values"] is None
    assert items[1]["too_large"] > 9_000
    assert full["values"]["s"] == "x" * 9_000


def test_whole_answer_keeps_the_byte_budget_not_its_rows_alone(readers):
    readers.change(lambda policy: policy.update(limits={"response_bytes": 6_000}))
    listed = [{"field": "customer_id", "op": "in", "value": [f"customer-{n}" for n in range(60)]}]

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening", where=listed)
        page = await ask.client.call_tool("read_page", {"cursor": opened["first_cursor"]})
        wider = [{**listed[0], "value": [f"customer-{n}" for n in range(900)]}]
        return (
            opened,
            page,
            await ask("open_query", scan="customers", view="screening", where=wider),
        )

    opened, page, refused = readers.ask(asking)

    assert 0 < len(page.structured_content["page"]["items"]) <= opened["summary"]["matching_count"]
    assert len(page.content[0].text.encode()) <= 6_000
    assert failure(refused) == ("narrow", "query_too_large")


def test_record_whose_fields_are_named_like_ours_is_read_as_it_is(things):
    """What is called as our columns are is no column; `row` and `count` are names like others."""
    columns = [
        {"name": "id", "type": "string", "nullable": False},
        {"name": "row", "type": "int64"},
        {"name": "count", "type": "int64"},
    ]
    records = [
        json.dumps({"id": f"r-{n}", "row": 100 - n, "count": n % 2, "_page": 7, "_position": 7})
        for n in range(6)
    ]
    readers = things([[each.encode() for each in records]], {"record_schema": columns})

    async def asking(ask):
        opened = await ask("open_query", scan="things", order=[{"field": "row"}])
        return (
            await rows_of(ask, opened, page_size=2),
            await ask("aggregate", scan="things", by=["count", "count"], measures=[{}, {}]),
            await ask("open_query", scan="things", where=[{"field": "_page", "value": 7}]),
        )

    rows, groups, ours = readers.ask(asking, who="eve")

    assert [each["row"] for each in rows] == [1, 2, 3, 4, 5, 6]
    assert [each["values"]["row"] for each in rows] == [95, 96, 97, 98, 99, 100]
    assert set(rows[0]["values"]) == {"id", "row", "count"}
    assert groups["groups"] == [
        {"by": {"count": 0}, "figures": {"count": 3}},
        {"by": {"count": 1}, "figures": {"count": 3}},
    ]
    assert failure(ours) == ("narrow", "field_unknown")


def test_values_come_out_as_json_holds_them_and_find_their_rows_again(things):
    readers = things(laid(6, **VALUES), TYPED)

    async def asking(ask):
        items = await rows_of(ask, await ask("open_query", scan="things"))
        found = []
        for item in items:
            for name, value in item["values"].items():
                if value is None or isinstance(value, float):
                    continue
                where = [
                    {"field": name, "value": value},
                    {"field": "id", "value": item["values"]["id"]},
                ]
                opened = await ask("open_query", scan="things", where=where)
                found.append((name, value, opened["summary"]["matching_count"]))
        return items, found

    items, found = readers.ask(asking, who="eve")

    assert [each["values"]["n"] for each in items][:4] == [
        3,
        None,
        "9007199254740993",
        "9007199254740992",
    ]
    assert items[3]["values"]["d"] == "12345678901234567890.123456789"
    assert items[3]["values"]["t"] == "2026-01-01T01:00:00+00:00"
    assert {count for _, _, count in found} == {1}


def test_figures_beyond_a_readers_numbers_come_out_exactly(things):
    readers = things(laid(6, n=[2**63 - 1], x=[1e308], d=["0.000000001"]), TYPED)
    measures = [{"measure": "sum", "field": name} for name in ("n", "x", "d")]

    async def asking(ask):
        answer = await ask("aggregate", scan="things", measures=measures)
        return answer, await ask("conclude", handle=answer["result_handle"])

    answer, concluded = readers.ask(asking, who="eve")

    assert answer["groups"][0]["figures"] == {
        "sum of n": str(6 * (2**63 - 1)),
        "sum of x": "inf",
        "sum of d": "0.000000006",
    }
    assert concluded["claim"] == "complete_aggregate"


def test_sum_that_overflows_the_engine_is_refused_and_not_wrapped(things):
    most = "9" * 29
    readers = things(laid(20, d=[most]), TYPED)

    async def asking(ask):
        measures = [{"measure": "sum", "field": "d"}]
        return await ask("aggregate", scan="things", measures=measures)

    assert failure(readers.ask(asking, who="eve")) == ("narrow", "figure_too_large")
