"""Benches of one's own: what no facts describe is played by whoever knows how to break it."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.testing import (
    BEHAVIOURS,
    AppBench,
    Behaviour,
    Bench,
    Conformance,
    Fault,
    NotExercisedError,
    Opened,
)
from scan_pipeline.testing.app_bench import as_transport
from scan_pipeline_tests.sources.mcp_servers import CURSOR, ENDPOINT, ScriptedHttp, structured
from scan_pipeline_tests.sources.test_etcd import COMPACTED, ScriptedEtcd
from scan_pipeline_tests.sources.ticket_desk import TICKETS, answer
from scan_pipeline_tests.testing.dialects import LIVE, PAGE_TOKEN, PINNED, scan

pytestmark = pytest.mark.long

NAMED = {str(each): each for each in BEHAVIOURS}
IDS = [f"k-{number:02d}" for number in range(1, 12)]

ETCD = parse_scan(
    {
        "name": "keys",
        "source": {"provider": "etcd", "url": "http://etcd.test:2379", "prefix": "k-", "limit": 4},
        "contract": {"key": ["key"], "consistency": "snapshot"},
    }
)


def etcd_of(ids: Sequence[str]) -> ScriptedEtcd:
    store = ScriptedEtcd()
    store.put((b"a", b"before"), (b"z", b"after"), *((each.encode(), b"v") for each in ids))
    return store


def filled(store: ScriptedEtcd, count: int) -> list[str]:
    del store.history[2 + count :]
    return IDS[:count]


def lying(change: Any) -> Any:
    def next_time(store: ScriptedEtcd) -> None:
        store.lie[len(store.asked) + 1] = change

    return next_time


@pytest.fixture(scope="module")
def etcd() -> Conformance:
    return Conformance(
        AppBench(
            ETCD,
            lambda: etcd_of(IDS),
            keys=IDS,
            changes={
                "rows_inserted": lambda store: store.put((b"k-00", b"early")),
                "rows_deleted": lambda store: store.put((b"k-01", None)),
                "last_page_full": lambda store: filled(store, 8),
                "no_records": lambda store: filled(store, 0),
                "continuation_missing": lying(lambda told: told.pop("count")),
                "signals_disagree": lying(lambda told: told.update(more=False)),
                "page_emptied": lying(lambda told: told.pop("kvs")),
            },
            answers={
                "expired": lambda: httpx2.Response(400, json={"code": 11, "message": COMPACTED})
            },
        )
    )


ETCD_LEFT = {
    "loop-repeated",
    "loop-cycle",
    "retry-response_lost_single_use",
    "retry-response_lost_connection_bound",
    "drift-pin_changed",
    "drift-pin_ignored",
    "end-error_with_success",
    "end-other_signal",
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=str)
def test_etcd_behaves(behaviour: Behaviour, etcd: Conformance) -> None:
    """Its own protocol, over a scripted store that keeps its history."""
    result = etcd.run(behaviour)

    result.check()
    assert (result.verdict == "not_exercised") == (str(behaviour) in ETCD_LEFT), result


class Sqlite(Bench):
    """A table that another connection writes while it is walked."""

    def __init__(self, folder: Path, consistency: str) -> None:
        self._path = folder / "things.db"
        source = {
            "protocol": "sql",
            "database": f"sqlite:///{self._path}",
            "table": "things",
            "order": ["id"],
            "page_size": 4,
        }
        if consistency == "live":
            source["snapshot"] = None
        contract = {"key": ["id"], "consistency": consistency}
        self._scan = parse_scan({"name": "things", "source": source, "contract": contract})

    @property
    def scan(self) -> Scan:
        return self._scan

    @contextmanager
    def open(self, scan: Scan, fault: Fault) -> Iterator[Opened]:
        del scan
        moves = {
            "rows_inserted": "INSERT INTO things VALUES (0)",
            "rows_deleted": "DELETE FROM things WHERE id = 11",
        }
        records = {"no_records": 0, "last_page_full": 8}.get(fault.kind, 11)
        if fault.strikes and fault.kind not in moves:
            raise NotExercisedError("a database in this process does nothing of the kind")
        self._path.unlink(missing_ok=True)
        self._run("PRAGMA journal_mode=WAL")
        self._run("CREATE TABLE things(id INTEGER PRIMARY KEY)")
        for number in range(1, records + 1):
            self._run(f"INSERT INTO things VALUES ({number})")
        done: list[str] = []

        def after_page(page: int) -> None:
            if fault.kind in moves and page == fault.page - 1 and not done:
                done.append(fault.kind)
                self._run(moves[fault.kind])

        yield Opened(
            keys=range(1, records + 1),
            after_page=after_page,
            struck=lambda: not fault.strikes or bool(done),
        )

    def _run(self, statement: str) -> None:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute(statement)


SQL_PLAYED = {
    "order-undisturbed",
    "drift-inserted",
    "drift-deleted",
    "end-full_last_page",
    "end-no_records",
    "resume-killed",
}


@pytest.mark.parametrize("consistency", ["snapshot", "live"])
@pytest.mark.parametrize("name", sorted(SQL_PLAYED))
def test_sqlite_behaves(name: str, consistency: str, tmp_path: Path) -> None:
    result = Conformance(Sqlite(tmp_path, consistency)).run(NAMED[name])

    assert result.verdict == "passed", result


def test_what_a_bench_cannot_play_is_told(tmp_path: Path) -> None:
    result = Conformance(Sqlite(tmp_path, "snapshot")).run(NAMED["end-login_page"])

    assert (result.verdict, "nothing of the kind" in result.found) == ("not_exercised", True)


MCP = {
    "protocol": "mcp_tool",
    "transport": {"http": {"url": ENDPOINT}},
    "tool": "things.list",
    "records_at": "items",
    "next": CURSOR,
    "count": {"at": "total", "means": "total", "exactness": "exact"},
}


def mcp_server() -> ScriptedHttp:
    def told(message: dict[str, Any], nth: int) -> dict[str, Any]:
        start = int(message["params"].get("arguments", {}).get("cursor", "0"))
        items = [{"id": each} for each in IDS[start : start + 4]]
        follows = str(start + 4) if start + 4 < len(IDS) else None
        return structured({"items": items, "next": follows, "total": len(IDS)})

    return ScriptedHttp(told)


@pytest.mark.parametrize(
    "name", ["order-undisturbed", "retry-response_lost_repeatable", "resume-killed"]
)
def test_mcp_tool_behaves(name: str) -> None:
    bench = AppBench(
        parse_scan({"name": "things", "source": MCP, "contract": LIVE}),
        mcp_server,
        keys=IDS,
        is_page=lambda request: b"tools/call" in request.content,
    )

    result = Conformance(bench).run(NAMED[name])

    assert result.verdict == "passed", result


DESK = parse_scan(
    {
        "name": "tickets",
        "source": {
            "adapter": "scan_pipeline_tests.sources.tickets.Tickets",
            "url": "http://desk.test",
            "page_size": 4,
        },
        "contract": PINNED,
    }
)


@pytest.mark.parametrize(
    "name",
    [
        "order-undisturbed",
        "loop-equal_page",
        "retry-throttled",
        "retry-response_lost_single_use",
        "expiry-expired",
        "end-body_cut",
        "resume-killed",
    ],
)
def test_adapter_over_a_function_that_answers(name: str) -> None:
    bench = AppBench(DESK, lambda: answer, keys=[number for number, _ in TICKETS])

    result = Conformance(bench).run(NAMED[name])

    assert result.verdict == "passed", result


async def things(request: Request) -> JSONResponse:
    start = int(request.query_params.get("cursor", "0"))
    follows = str(start + 4) if start + 4 < len(IDS) else None
    return JSONResponse(
        {"items": [{"id": each} for each in IDS[start : start + 4]], "next": follows}
    )


@pytest.mark.parametrize("name", ["order-undisturbed", "end-login_page"])
def test_scan_file_over_an_asgi_application(name: str) -> None:
    bench = AppBench(
        scan(PAGE_TOKEN), lambda: Starlette(routes=[Route("/things", things)]), keys=IDS
    )

    result = Conformance(bench).run(NAMED[name])

    assert result.verdict == "passed", result


def test_server_that_nothing_knows_how_to_ask_is_refused() -> None:
    with pytest.raises(TypeError, match="ASGI"):
        as_transport(7)  # type: ignore[arg-type]


def test_wrong_keys_of_a_bench_are_told_as_missing() -> None:
    """A bench that promises what its server has not."""
    bench = AppBench(DESK, lambda: answer, keys=[*(number for number, _ in TICKETS), 99])

    result = Conformance(bench).run(NAMED["order-undisturbed"])

    assert result.verdict == "failed"
    assert "first [99]" in result.found
