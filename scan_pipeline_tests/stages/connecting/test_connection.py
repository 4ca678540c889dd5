"""A scan file held against its source: one line a question, two pages at most, nothing told."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import httpx2
import pytest

from scan_pipeline.core.errors import ConfigurationError, SourceUnavailableError
from scan_pipeline.simulator.mcp_server import running_mcp
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.connecting.connection import check_connection
from scan_pipeline.stages.connecting.lines import QUESTIONS
from scan_pipeline.stages.workspace import open_in_world
from scan_pipeline_tests.conftest import laid_down
from scan_pipeline_tests.sources.mcp_bench import as_mcp, over_http

TOKEN = {"REGISTRY_TOKEN": AUDITOR_TOKEN}
PAGES = [[b'{"id":"a"}', b'{"id":"b"}'], [b'{"id":"c"}', b'{"id":"d"}'], [b'{"id":"e"}']]


def asked(scan, inner=None, environ=None):
    source = open_in_world(scan, environ=environ or {}, inner=inner, sleep=lambda _: None)
    try:
        return check_connection(scan, source=source)
    finally:
        source.close()


def results(found):
    return {each.question: each.result for each in found.lines}


def line(found, question):
    return next(each for each in found.lines if each.question == question)


@pytest.fixture
def registry(bench):
    """Hold the shipped scan, edited, against a registry in this process."""

    def check(edits=None, *, environ=TOKEN, **arguments):
        workspace = bench.workspace(bench.registry(**arguments), environ=environ)
        scan = bench.scan(edits)
        return check_connection(scan, source=workspace.source(scan))

    return check


def test_every_question_is_answered_in_order_and_passes(registry):
    found = registry()

    assert tuple(each.question for each in found.lines) == QUESTIONS
    assert {q for q, result in results(found).items() if result != "passed"} == {"high_water_mark"}
    assert line(found, "high_water_mark").result == "not_declared"
    assert line(found, "identity").found == "auditor@registry.example"
    assert found.passed
    assert found.pages == 2


def test_bound_of_a_source_that_declares_one_is_looked_at(registry):
    bound = {
        "url": "simulator://registry/v1/customers/high_water_mark",
        "at": "high_water_mark",
        "send_as": "up_to",
    }

    found = registry({"source.high_water_mark": bound})

    assert line(found, "high_water_mark").result == "passed"


@pytest.mark.parametrize(
    ("edits", "question", "told"),
    [
        ({"source.records_at": "rows"}, "records", "no list at rows"),
        ({"source.next.at": "page.cursor"}, "continuation", "no field at page.cursor"),
        ({"source.next.at": "page.is_complete"}, "continuation", "expected a token"),
        ({"source.next.send_as": "after"}, "second_page", "unknown_parameter"),
        ({"source.snapshot.at": "collection.version"}, "snapshot", "names no version"),
        ({"source.count.at": "page.returned_count"}, "count", "100, fewer than the records"),
        ({"source.count.at": "collection.total"}, "count", "no count"),
        ({"source.count.means": "remaining"}, "count", "it fell by 0"),
        ({"source.identity.at": "user"}, "identity", "no principal at user"),
        ({"source.partition_counts.at": "counts"}, "partition_counts", "no counts by partition"),
        (
            {"contract.key": ["client_id"], "contract.expect": {}},
            "key",
            "200 of 200 records have no text or integer there",
        ),
        (
            {"contract.key": ["status"], "contract.expect": {}},
            "key",
            "keys stand twice",
        ),
        (
            {
                "record_schema": [
                    {"name": "customer_id", "type": "string"},
                    {"name": "region", "type": "int64"},
                ]
            },
            "record_schema",
            "200 of 200 records do not conform: region is not int64",
        ),
    ],
)
def test_what_is_not_as_declared_is_named_with_what_to_do(registry, edits, question, told):
    found = registry({"contract.partition_by": ..., "contract.expect": {}, **edits})

    wrong = [each for each in found.lines if each.result == "failed"]
    assert [each.question for each in wrong] == [question]
    assert told in wrong[0].found
    assert wrong[0].expected
    assert wrong[0].remedy
    assert not found.passed


def test_credentials_that_are_refused_leave_the_rest_unasked(registry):
    found = registry(environ={"REGISTRY_TOKEN": "nobodys"})

    assert results(found) == dict.fromkeys(QUESTIONS, "not_evaluated") | {"access": "failed"}
    assert "nobodys" not in str(found)


def test_secret_that_is_missing_is_no_answer_of_the_source(things):
    with pytest.raises(ConfigurationError, match="SHOP_TOKEN"):
        asked(things({"source.auth": {"bearer": {"env": "SHOP_TOKEN"}}}), laid_down(PAGES))


def test_values_of_records_and_tokens_are_in_no_line(registry):
    found = registry(
        {
            "record_schema": [
                {"name": "customer_id", "type": "int64"},
                {"name": "name", "type": "bool"},
            ],
            "contract.partition_by": ...,
            "contract.expect": {},
        }
    )

    told = str(found)
    assert "customer-1" not in told
    assert "cur_" not in told
    assert "Rahul" not in told


def test_no_more_than_two_pages_are_asked_for(things):
    transport, requests = laid_down(PAGES), []

    def answer(request):
        requests.append(request)
        return transport.handle_request(request)

    found = asked(things(), httpx2.MockTransport(answer))

    assert found.passed
    assert len(requests) == found.pages == 2


def test_collection_of_one_page_shows_its_end(things):
    found = asked(things(), laid_down(PAGES[:1]))

    assert line(found, "continuation").found == "the declared end: null"
    assert line(found, "second_page").result == "not_declared"
    assert (found.passed, found.pages) == (True, 1)


def test_exact_count_that_the_end_contradicts_fails(things):
    found = asked(things(), laid_down(PAGES[:2], total=9))

    assert line(found, "count").found == "9, and 4 records to the end"


def test_empty_collection_does_not_show_that_the_key_holds(things):
    found = asked(things(), laid_down([[]]))

    assert results(found)["key"] == "not_evaluated"
    assert not found.passed


def test_continuation_that_the_source_ignores_is_found(things):
    first = laid_down(PAGES)

    def answer(request):
        cut = request.url.copy_remove_param("cursor")
        return first.handle_request(httpx2.Request("GET", cut))

    found = asked(things(), httpx2.MockTransport(answer))

    assert "came again" in line(found, "second_page").found


def test_source_that_does_not_answer_is_no_answer(things):
    def answer(request):
        raise httpx2.ConnectError("no")

    with pytest.raises(SourceUnavailableError):
        asked(things(), httpx2.MockTransport(answer))


def items_of_sqlite(tmp_path, *, mode):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"pragma journal_mode={mode}")
        connection.execute("create table items (id integer primary key, name text)")
        rows = [(n, f"thing {n}") for n in range(1, 8)]
        connection.executemany("insert into items values (?, ?)", rows)
    source = {"protocol": "sql", "table": "items", "order": ["id"], "page_size": 3}
    facts = {
        "name": "items",
        "source": {**source, "database": f"sqlite:///{path}"},
        "contract": {"key": ["id"], "consistency": "snapshot"},
    }
    return parse_scan(facts)


def test_table_of_a_database_is_asked_in_the_same_way(tmp_path):
    found = asked(items_of_sqlite(tmp_path, mode="wal"))

    assert {q for q, r in results(found).items() if r == "failed"} == set()
    assert line(found, "key").found == "id: integer, in every record"
    assert line(found, "second_page").found == "3 other records"


def test_database_that_cannot_be_walked_as_declared_is_told(tmp_path):
    found = asked(items_of_sqlite(tmp_path, mode="delete"))

    assert line(found, "access").result == "failed"
    assert "expected PRAGMA journal_mode=WAL" in line(found, "access").found


def test_tool_of_an_mcp_server_is_asked_in_the_same_way(shipped):
    clock = lambda: datetime(2026, 11, 30, tzinfo=UTC)  # noqa: E731
    with running_mcp(Registry(size=250, cases=0, clock=clock)) as endpoint:
        scan = parse_scan(as_mcp(shipped, over_http(endpoint)))
        found = asked(scan, environ=TOKEN)

    assert {q for q, r in results(found).items() if r not in ("passed", "not_declared")} == set()
    assert line(found, "count").found == "total 250, declared exact"
