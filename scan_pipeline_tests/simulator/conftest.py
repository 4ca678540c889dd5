"""A reader over the registry, in process or over a real port."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.server import running
from scan_pipeline.simulator.transport import SimulatorTransport


class Reader:
    """Sends what it is told to and follows cursors; it judges nothing."""

    def __init__(self, client: httpx2.Client, collection: str) -> None:
        self.client = client
        self.collection = collection

    def get(self, **params: Any) -> httpx2.Response:
        return self.client.get(f"/v1/{self.collection}", params=params)

    def page(self, **params: Any) -> dict[str, Any]:
        response = self.get(**params)
        assert response.status_code == 200, response.text
        return json.loads(response.content)

    def after(self, page: dict[str, Any], **params: Any) -> dict[str, Any]:
        """Return the parameters of the request that follows a page."""
        snapshot_id = page["collection"]["snapshot_id"]
        pin = {} if snapshot_id is None else {"snapshot_id": snapshot_id}
        return {**params, **pin, "cursor": page["page"]["next_cursor"]}

    def walk(self, *, limit: int = 200, **params: Any) -> list[dict[str, Any]]:
        pages = [self.page(**params)]
        while pages[-1]["page"].get("next_cursor") and len(pages) < limit:
            pages.append(self.page(**self.after(pages[-1], **params)))
        return pages

    def reach(self, number: int, **params: Any) -> dict[str, Any]:
        """Walk up to the page before `number`; return the parameters of the request for it."""
        pages = self.walk(limit=number - 1, **params)
        return self.after(pages[-1], **params)


def numbers(*pages: dict[str, Any]) -> list[int]:
    """Return the numbers in the keys of the records on these pages."""
    items = [item for page in pages for item in page["items"]]
    return [int((item.get("case_id") or item["customer_id"]).partition("-")[2]) for item in items]


def fixed_clock() -> datetime:
    return datetime(2026, 8, 29, 9, 18, tzinfo=UTC)


@pytest.fixture
def reading() -> Iterator[Callable[..., Reader]]:
    """Open readers on registries, in process unless told otherwise."""
    with ExitStack() as stack:

        def read(
            registry: Registry,
            *,
            token: str | None = AUDITOR_TOKEN,
            collection: str = "customers",
            over: str = "in_process",
            timeout_s: float = 5.0,
        ) -> Reader:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            transport, base = None, "simulator://registry"
            if over == "port":
                base = stack.enter_context(running(registry))
            else:
                transport = SimulatorTransport(registry, sleep=lambda _: None)
            client = httpx2.Client(
                transport=transport,
                headers=headers,
                base_url=base,
                timeout=timeout_s,
                trust_env=False,
            )
            return Reader(stack.enter_context(client), collection)

        yield read


@pytest.fixture
def numbered() -> Callable[..., list[int]]:
    return numbers


@pytest.fixture
def clock() -> Callable[[], datetime]:
    """A clock that stands at 2026-08-29T09:18:00Z."""
    return fixed_clock
