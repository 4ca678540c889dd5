"""moto's server in a process of its own, filled with customers: real HTTP, AWS wire formats.

`python moto_server.py SIZE DRAFTS` prints where it listens. Customers are objects of a bucket,
items of a table, users and roles of an account; drafts are items of the table alone, in one
stretch. They are put into moto's own backends: over HTTP, filling would take longer than the walks.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

INSTALL: Final = "pip install 'scan-pipeline[test]'"

ACCOUNT: Final = "123456789012"
REGION: Final = "us-east-1"
NAME: Final = "customers"

ODD_KEYS: Final = ("odd/a b", "odd/a+b", "odd/ü", "odd/50%25", "odd/<&>", 'odd/"q"')
"""Keys of objects that no URL or XML holds as they are."""


def need_moto(*, environ: Mapping[str, str]) -> None:
    """Skip where moto is missing on a laptop; fail where it is missing in CI."""
    if importlib.util.find_spec("moto") and importlib.util.find_spec("flask"):
        return
    told = f"moto's server is not installed; install the test extra: {INSTALL}"
    if environ.get("CI", "").lower() == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


@contextmanager
def serving_moto(size: int, *, drafts: int, environ: Mapping[str, str]) -> Iterator[str]:
    """Serve so many customers and drafts for the length of a `with` block; yields the address."""
    need_moto(environ=environ)
    with tempfile.TemporaryFile("w+") as told:
        server = subprocess.Popen(
            [sys.executable, __file__, str(size), str(drafts)],
            stdout=subprocess.PIPE,
            stderr=told,
            stdin=subprocess.DEVNULL,
            env={**environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            text=True,
        )
        try:
            url = server.stdout.readline().strip() if server.stdout else ""
            if not url.startswith("http://127.0.0.1:"):
                told.seek(0)
                raise RuntimeError(f"moto's server did not start; it said: {told.read()[-2000:]}")
            yield url
        finally:
            server.terminate()
            server.wait(30)
            if server.stdout:
                server.stdout.close()


def typed(value: Any) -> dict[str, Any]:
    """Return a JSON value as an attribute of DynamoDB."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case list():
            return {"L": [typed(each) for each in value]}
        case _:
            return {"M": {name: typed(each) for name, each in value.items()}}


def item_of(raw: bytes) -> dict[str, Any]:
    """Return a customer as an item: tags, which have no order, are a set where there are any."""
    customer = json.loads(raw, parse_float=Decimal)
    tags = customer.pop("tags")
    item = {name: typed(value) for name, value in customer.items()}
    return {**item, "kind": {"S": "customer"}, **({"tags": {"SS": tags}} if tags else {})}


def fill(size: int, drafts: int) -> None:
    """Put everything into the backends of this process."""
    from moto.dynamodb.models import dynamodb_backends
    from moto.iam.models import iam_backends
    from moto.s3.models import s3_backends

    from scan_pipeline.simulator.population import population

    objects = s3_backends[ACCOUNT]["aws"]
    account = iam_backends[ACCOUNT]["aws"]
    tables = dynamodb_backends[ACCOUNT][REGION]
    objects.create_bucket(NAME, REGION)
    tables.create_table(
        NAME,
        schema=[{"AttributeName": "customer_id", "KeyType": "HASH"}],
        throughput=None,
        attr=[{"AttributeName": "customer_id", "AttributeType": "S"}],
        global_indexes=None,
        indexes=None,
        streams=None,
        billing_mode="PAY_PER_REQUEST",
        sse_specification=None,
        tags=[],
        deletion_protection_enabled=False,
        warm_throughput=None,
    )
    for row in population("customers", size):
        name = f"customer-{row.number}"
        objects.put_object(NAME, f"customers/{name}", row.raw)
        account.create_user(REGION, name)
        account.create_role(name, "{}", "/", None, "", [], None)
        tables.put_item(NAME, item_of(row.raw))
        if row.number == size // 2:
            for number in range(drafts):
                key = {"S": f"customer-{row.number}~{number:04}"}
                tables.put_item(NAME, {"customer_id": key, "kind": {"S": "draft"}})
    account.create_group("auditors")
    for key in ODD_KEYS:
        objects.put_object(NAME, key, b"")


def serve(size: int, drafts: int) -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    fill(size, drafts)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    server._thread.join()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
