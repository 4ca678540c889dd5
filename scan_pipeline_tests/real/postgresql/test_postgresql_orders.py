"""What may order a walk of PostgreSQL, what is refused, and how values travel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.postgresql.server import PostgresServer
from scan_pipeline_tests.real.postgresql.walks import lines, run

pytestmark = pytest.mark.long

# What is checked before the first page.

FLOAT = "CREATE TABLE {t}(id float8 PRIMARY KEY)"
JSON = "CREATE TABLE {t}(id jsonb PRIMARY KEY)"
TIES = "CREATE TABLE {t}(id int); INSERT INTO {t} VALUES (1), (1), (2)"
NULLS = "CREATE TABLE {t}(id int UNIQUE); INSERT INTO {t} VALUES (1), (NULL)"
PARTIAL_INDEX = """
    CREATE TABLE {t}(id int, kept bool);
    CREATE UNIQUE INDEX ON {t}(id) WHERE kept;
    INSERT INTO {t} VALUES (1, true), (1, false)
"""
INHERITED = """
    CREATE TABLE {t}(id int PRIMARY KEY);
    CREATE TABLE {t}_child() INHERITS ({t});
    INSERT INTO {t} VALUES (1);
    INSERT INTO {t}_child VALUES (1)
"""
INCLUDED_COLUMN = """
    CREATE TABLE {t}(id int, other int);
    CREATE UNIQUE INDEX ON {t}(other) INCLUDE (id);
    INSERT INTO {t} VALUES (1, 1), (1, 2)
"""
FOLDED_TEXTS = """
    CREATE COLLATION {t}_c (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE {t}(id text COLLATE {t}_c PRIMARY KEY)
"""
MOVED_COLLATION = """
    CREATE COLLATION {t}_c (provider = icu, locale = 'de');
    CREATE TABLE {t}(id text COLLATE {t}_c PRIMARY KEY);
    UPDATE pg_collation SET collversion = '0' WHERE collname = '{t}_c'
"""


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(TIES, "several rows of .* with equal id", id="ties"),
        pytest.param(NULLS, "nulls in id", id="nulls"),
        pytest.param(PARTIAL_INDEX, "several rows", id="partial-index"),
        pytest.param(INHERITED, "several rows", id="inherited"),
        pytest.param(INCLUDED_COLUMN, "several rows", id="included-column"),
        pytest.param(FLOAT, "found id of type float8", id="float"),
        pytest.param(JSON, "found id of type jsonb", id="json"),
        pytest.param(FOLDED_TEXTS, "holds different texts for equal", id="folded-texts"),
        pytest.param(MOVED_COLLATION, "of another version when indexes", id="collation-moved"),
        pytest.param("SELECT 1", "no table", id="no-table"),
    ],
)
def test_order_that_cannot_be_walked_is_refused(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer, made: str, told: str
) -> None:
    make(server, made)

    with pytest.raises(ContractError, match=told):
        run(small("refused"), place)


@pytest.mark.parametrize(
    ("source", "told"),
    [({"columns": ["x"]}, "no column x"), ({"where": {"id": "no number"}}, "22P02")],
    ids=["column", "value"],
)
def test_query_that_cannot_be_asked_is_refused(
    small: Callable[..., Scan],
    place: Workspace,
    server: PostgresServer,
    source: dict[str, Any],
    told: str,
) -> None:
    make(server, "CREATE TABLE {t}(id int PRIMARY KEY)")

    with pytest.raises(ContractError, match=told):
        run(small("refused", **source), place)


def make(server: PostgresServer, made: str) -> None:
    with server.connect() as connection:
        connection.execute(
            "DROP TABLE IF EXISTS refused CASCADE; DROP COLLATION IF EXISTS refused_c"
        )
        connection.execute(sql.SQL(made.replace("{t}", "refused")))  # pyright: ignore[reportArgumentType]


ORDERS = {
    "integer": ("int", "7, 1, 5, 3, 2"),
    "bigint": ("bigint", "9223372036854775807, -9223372036854775808, 0, 1, 2"),
    "numeric": ("numeric", "1.50, 1.51, 12345678901234567.89, -0.1, 'NaN'"),
    "text": ("text", "'b', 'B', 'a', 'é', 'a b'"),
    "char": ("char(4)", "'b', 'B', 'a', 'é', 'a b'"),
    "uuid": ("uuid", ", ".join(f"'00000000-0000-0000-0000-00000000000{n}'" for n in range(5))),
    "date": ("date", "'2026-11-30', '0044-03-15 BC', 'infinity', '12026-01-01', '0001-01-01'"),
    "timestamp": (
        "timestamp",
        "'2026-11-30 02:00:00.000001', '2026-11-30 02:00', 'infinity', '-infinity', '9999-12-31'",
    ),
    "timestamptz": (
        "timestamptz",
        "'2026-11-30 02:00:00.000001+01', '2026-11-30 02:00Z', 'infinity', '0044-01-01 BC', 'now'",
    ),
    "bytea": ("bytea", r"'\x00', '\x00ff', '\xff', '', 'a'"),
    "boolean": ("bool", "true, false"),
    "enum": ("mood", "'sad', 'ok', 'happy'"),
    "domain": ("positive", "5, 1, 4, 2, 3"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_every_type_that_may_order_finds_its_way_back(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer, name: str
) -> None:
    """One row a page, so that every value is a position."""
    kind, values = ORDERS[name]
    rows = ", ".join(f"({each}, {number})" for number, each in enumerate(values.split(", ")))
    with server.connect() as connection:
        connection.execute("DROP TYPE IF EXISTS mood CASCADE")
        connection.execute("DROP DOMAIN IF EXISTS positive CASCADE")
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        connection.execute("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
        made = f"CREATE TABLE by_{name}(v {kind} PRIMARY KEY, id int UNIQUE)"
        filled = f"INSERT INTO by_{name} VALUES {rows}"
        connection.execute(sql.SQL(f"{made}; {filled}"))  # pyright: ignore[reportArgumentType]
        ordered = sql.SQL(f"SELECT id FROM by_{name} ORDER BY v")  # pyright: ignore[reportArgumentType]
        expected = [number for (number,) in connection.execute(ordered)]
    scan = small(f"by_{name}", order=["v"], page_size=1)

    receipt = run(scan, place)

    assert [each["id"] for each in lines(scan, place, receipt)] == expected
    assert receipt.coverage_status == "verified"


@pytest.mark.parametrize("name", ["integer", "numeric", "text", "timestamptz", "date"])
def test_bound_of_any_type_finds_its_way_back(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer, name: str
) -> None:
    kind, values = ORDERS[name]
    first, second, third, *_ = values.replace("'infinity'", "'2026-11-01'").split(", ")
    with server.connect() as connection:
        made = f"CREATE TABLE bounded_{name}(id int PRIMARY KEY, v {kind})"
        filled = f"INSERT INTO bounded_{name} VALUES (1, {first}), (2, {second}), (3, {third})"
        connection.execute(sql.SQL(f"{made}; {filled}"))  # pyright: ignore[reportArgumentType]
    bounded = {"snapshot": None, "high_water_mark": {"field": "v"}, "page_size": 1}
    scan = small(f"bounded_{name}", **bounded, consistency="high_water_mark")

    receipt = run(scan, place)

    assert receipt.coverage_status == "verified"
    assert receipt.conclusion_scope == "all_records_up_to_high_water_mark"
    assert receipt.unique_ids_observed == 3


def test_view_is_walked_by_what_its_rows_show(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer
) -> None:
    server.run(
        "CREATE TABLE below(a int, b int)",
        "INSERT INTO below SELECT n / 2, n FROM generate_series(1, 5) n",
        'CREATE VIEW "odd %s:view" AS SELECT a, b AS "odd :name" FROM below',
    )

    receipt = run(
        small(["public", "odd %s:view"], key="odd :name", order=["a", "odd :name"]), place
    )

    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", 5)


def test_values_travel_exactly(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer
) -> None:
    values = {
        "true": "true",
        "32767::int2": "32767",
        "9223372036854775807": "9223372036854775807",
        "12345678901234567.890": "12345678901234567.89",
        "'NaN'::numeric": '"NaN"',
        "'-Infinity'::float8": '"-Infinity"',
        "0.1::float4": "0.1",
        "9007199254740993::float8": "9007199254740992",
        "'Ünï' || chr(10)": '"Ünï\\n"',
        "'ab '::char(4)": '"ab  "',
        r"'\x00ff'::bytea": '"AP8="',
        "'2026-11-30 03:00:00.5+01'::timestamptz": '"2026-11-30T02:00:00.5Z"',
        "'2026-11-30 03:00'::timestamp": '"2026-11-30T03:00:00"',
        "'infinity'::timestamptz": '"infinity"',
        "'2026-11-30'::date": '"2026-11-30"',
        "'03:00:01+02'::timetz": '"03:00:01+02"',
        "'1 day 2 hours'::interval": '"P1DT2H"',
        "'{\"b\": 1.50, \"a\": [12345678901234567.89]}'::json": (
            '{"a":[12345678901234567.89],"b":1.5}'
        ),
        "'{\"a\": 1, \"a\": 2}'::json": '"{\\"a\\": 1, \\"a\\": 2}"',
        "'{\"a\": 1e3}'::jsonb": '{"a":1000}',
        "ARRAY[1.50, NULL, 'NaN']": '[1.5,null,"NaN"]',
        "ARRAY['2026-11-30 02:00Z'::timestamptz]": '["2026-11-30T02:00:00Z"]',
        "'6f1e3a1e-0000-4000-8000-00000000000a'::uuid": '"6f1e3a1e-0000-4000-8000-00000000000a"',
        "'10.0.0.0/8'::cidr": '"10.0.0.0/8"',
        "'[1,5)'::int4range": '"[1,5)"',
        "NULL::int": "null",
    }  # fmt: skip
    columns = ", ".join(f"{each} AS c{n:02}" for n, each in enumerate(values))
    with server.connect() as connection:
        connection.execute(sql.SQL(f"CREATE TABLE typed AS SELECT 1 AS id, {columns}"))  # pyright: ignore[reportArgumentType]
    scan = small("typed")

    receipt = run(scan, place)

    (_, body), *_ = place.store(scan.name, receipt.scan_generation).bodies()
    texts = [
        str(each).lower() if isinstance(each, bool | int) else each for each in values.values()
    ]
    told = ",".join(f'"c{n:02}":{text}' for n, text in enumerate(texts))
    assert body.decode() == f'{{{told},"id":1}}'


def test_table_we_may_not_read_leaves_a_receipt(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer
) -> None:
    server.run(
        "DROP ROLE IF EXISTS stranger",
        "CREATE ROLE stranger LOGIN",
        "CREATE TABLE closed(id int PRIMARY KEY)",
    )

    receipt = run(small("closed", user="stranger"), place)

    assert (receipt.traversal, receipt.stop_reason) == ("interrupted", "access_refused")


def test_password_is_looked_up_when_connecting_and_kept_nowhere(
    small: Callable[..., Scan], place: Workspace, server: PostgresServer, tmp_path: Path
) -> None:
    server.run("CREATE TABLE guarded(id int PRIMARY KEY)")
    scan = small("guarded", password={"env": "REGISTRY_PASSWORD"})

    with pytest.raises(ConfigurationError, match="REGISTRY_PASSWORD"):
        run(scan, place)
    place = Workspace(place.project, environ={"REGISTRY_PASSWORD": "hunter2"})
    receipt = run(scan, place)

    assert receipt.coverage_status == "verified"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter2" not in written
