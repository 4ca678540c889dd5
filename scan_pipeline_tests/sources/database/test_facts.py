"""What a scan file may say of a table, and what is refused before anything is asked."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from scan_pipeline.core.scan import Scan, scan_json
from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline.sources.database.facts import SqlSource

FACTS: dict[str, Any] = {
    "name": "items",
    "source": {
        "protocol": "sql",
        "database": "sqlite:////srv/items.db",
        "table": "items",
        "order": ["id"],
    },
    "contract": {"key": ["id"], "consistency": "snapshot"},
}

PAGE_BY_PAGE: dict[str, Any] = {"source.snapshot": None, "contract.consistency": "live"}
BOUNDED = {"source.high_water_mark": {"field": "id"}, "contract.consistency": "high_water_mark"}
OFFSET = {"source.advance": "offset"}
POSTGRESQL = {"source.database": "postgresql://db.test:5432/registry", "source.user": "auditor"}

Edit = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def scan_of(edit: Edit, edits: Mapping[str, Any]) -> Scan:
    return parse_scan(edit(FACTS, edits))


@pytest.mark.parametrize(
    ("edits", "continuation"), [({}, "connection_bound"), (PAGE_BY_PAGE, "repeatable")]
)
def test_snapshot_lives_as_long_as_its_connection(
    edit: Edit, edits: dict[str, Any], continuation: str
) -> None:
    assert scan_of(edit, edits).source.continuation == continuation


@pytest.mark.parametrize(
    "odd",
    [{"advance": "offset"}, {"snapshot": None}, {"high_water_mark": {"field": "id"}}],
    ids=json.dumps,
)
def test_readers_need_a_snapshot_and_ranges_to_share(edit: Edit, odd: dict[str, Any]) -> None:
    several = {**POSTGRESQL, "source.readers": 4}
    source = scan_of(edit, several).source
    assert isinstance(source, SqlSource)
    assert source.readers == 4

    with pytest.raises(ScanFileError, match="several readers"):
        scan_of(edit, {**several, **{f"source.{name}": value for name, value in odd.items()}})


@pytest.mark.parametrize(
    "odd",
    [
        {"database": "mysql://host/name"},
        {"database": "sqlite:///relative.db"},
        {"database": "sqlite://"},
        {"database": "postgresql://host"},
        {"database": "no address"},
        {"database": "postgresql+asyncpg://host/name"},
        {"user": "someone"},
        {"password": {"env": "PASSWORD"}},
        {"readers": 2},
        {"order": []},
        {"order": ["id", "id"]},
        {"columns": ["id", "id"]},
        {"table": "a.b.c"},
        {"continuation": "repeatable"},
        {"continuation": "single_use"},
        {"snapshot": {"at": "x", "send_as": "y"}},
        {"count": {"at": "x", "exactness": "exact"}},
        {"high_water_mark": {}},
        {"high_water_mark": {"field": "id", "url": "http://elsewhere"}},
        {"advance": "cursor"},
        {"page_size": 0},
        {"limit": 5},
    ],
    ids=json.dumps,
)
def test_facts_that_cannot_be_walked_are_refused(edit: Edit, odd: dict[str, Any]) -> None:
    with pytest.raises(ScanFileError):
        scan_of(edit, {f"source.{name}": value for name, value in odd.items()})


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:hunter2@host/name", "postgresql://host/name?password=hunter2"],
)
def test_password_in_the_address_is_refused_and_not_shown(edit: Edit, address: str) -> None:
    with pytest.raises(ScanFileError) as refused:
        scan_of(edit, {"source.database": address})

    assert "expected user: NAME and password: {env: NAME}" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_page_by_page_walk_cannot_be_declared_a_snapshot(edit: Edit) -> None:
    with pytest.raises(ScanFileError, match=r"contract\.consistency"):
        scan_of(edit, {"source.snapshot": None})


@pytest.mark.parametrize("edits", [{}, PAGE_BY_PAGE, {**PAGE_BY_PAGE, **BOUNDED}, OFFSET])
def test_scan_reads_back_as_it_was_written(edit: Edit, edits: dict[str, Any]) -> None:
    scan = scan_of(edit, edits)

    assert parse_scan(scan_json(scan)) == scan
