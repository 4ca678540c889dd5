"""One cluster for the folder; customers, another client, and scan files to walk them by."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.population import population
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.real.postgresql.server import PostgresServer, serving_postgresql

CUSTOMERS = 8_742

FACTS = Path(__file__).with_name("customers.yaml")


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with serving_postgresql(environ=os.environ) as running:
        yield running


@pytest.fixture
def customers(server: PostgresServer) -> Mapping[str, bytes]:
    """Fill the table with every customer; by id, what each is as JSON."""
    return filled(server, CUSTOMERS)


@pytest.fixture
def thousand(server: PostgresServer) -> Mapping[str, bytes]:
    """Fill the table with the first thousand."""
    return filled(server, 1_000)


def filled(server: PostgresServer, size: int) -> Mapping[str, bytes]:
    server.run(
        "DROP TABLE IF EXISTS customers",
        """CREATE TABLE customers(
            customer_id text PRIMARY KEY, region text NOT NULL, balance numeric(14, 2) NOT NULL,
            updated_at timestamptz NOT NULL, record jsonb NOT NULL)""",
    )
    told: dict[str, bytes] = {}
    with (
        server.connect() as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY customers FROM STDIN") as copy,
    ):
        for row in population("customers", size):
            value = json.loads(row.raw, parse_float=str)
            told[value["customer_id"]] = row.raw
            names = ("customer_id", "region", "balance", "updated_at")
            copy.write_row((*(value[name] for name in names), row.raw.decode()))
    return told


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    return Workspace(project, environ={})


@pytest.fixture
def scan_of(server: PostgresServer, edit: Callable[..., dict[str, Any]]) -> Callable[..., Scan]:
    def parse(edits: Mapping[str, Any] | None = None) -> Scan:
        facts = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
        return parse_scan(edit(facts, {"source.database": server.database(), **(edits or {})}))

    return parse


@pytest.fixture
def small(scan_of: Callable[..., Scan]) -> Callable[..., Scan]:
    """A scan of a table of a few rows by its id, without expectations."""

    def parse(
        table: str | list[str], *, key: str = "id", consistency: str = "snapshot", **source: Any
    ) -> Scan:
        plain = {
            "source.table": table,
            "source.page_size": 2,
            "source.order": [key],
            "source.partition_counts": None,
            "contract": {"consistency": consistency, "key": [key]},
        }
        return scan_of({**plain, **{f"source.{name}": value for name, value in source.items()}})

    return parse


@pytest.fixture
def writer(server: PostgresServer) -> Iterator["psycopg.Connection[Any]"]:
    """Another client, each of whose statements is committed as it ends."""
    with server.connect() as connection:
        yield connection
