import subprocess
import sys
import threading

import httpx2
import pytest

from scan_pipeline.simulator.answer_faults import Delayed
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.transport import SimulatorTransport

URL = "simulator://registry/v1/customers"
HEADERS = {"authorization": f"Bearer {AUDITOR_TOKEN}"}


def test_the_registry_is_served_under_its_own_scheme():
    with httpx2.Client(transport=SimulatorTransport(Registry()), headers=HEADERS) as client:
        response = client.get(URL, params={"page_size": 1})

    assert response.status_code == 200
    assert str(response.request.url).startswith(URL)


def test_it_can_be_mounted_beside_other_transports():
    mounts = {"simulator://": SimulatorTransport(Registry())}
    with httpx2.Client(mounts=mounts, headers=HEADERS) as client:
        assert client.get(URL).status_code == 200


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("simulator://registy/v1/customers", httpx2.ConnectError),
        ("http://registry/v1/customers", httpx2.UnsupportedProtocol),
    ],
)
def test_other_hosts_and_schemes_are_not_served(url, error):
    with httpx2.Client(transport=SimulatorTransport(Registry())) as client, pytest.raises(error):
        client.get(url)


def test_a_closed_transport_connects_to_nothing():
    transport = SimulatorTransport(Registry())
    transport.close()

    with pytest.raises(httpx2.ConnectError, match="closed"):
        transport.handle_request(httpx2.Request("GET", URL))


def test_waiting_is_left_to_the_clock_it_was_given():
    slept = []
    script = Script(faults=(Delayed(page=1, seconds=30),))
    transport = SimulatorTransport(Registry(script=script), sleep=slept.append)

    with httpx2.Client(transport=transport, headers=HEADERS, timeout=60) as client:
        client.get(URL)
        with pytest.raises(httpx2.ReadTimeout):
            client.get(URL, timeout=2)

    assert slept == [30, 2]


def test_a_head_request_has_headers_and_no_body():
    with httpx2.Client(transport=SimulatorTransport(Registry()), headers=HEADERS) as client:
        response = client.head(URL)

    assert (response.status_code, response.content) == (200, b"")


def test_threads_may_share_a_registry():
    registry = Registry(size=2_000)
    counts = []

    def walk():
        with httpx2.Client(transport=SimulatorTransport(registry), headers=HEADERS) as client:
            params, rows = {}, 0
            while params is not None:
                page = client.get(URL, params=params).json()
                rows += len(page["items"])
                cursor, pin = page["page"]["next_cursor"], page["collection"]["snapshot_id"]
                params = {"cursor": cursor, "snapshot_id": pin} if cursor else None
            counts.append(rows)

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts == [2_000] * 4
    assert len(registry.served.pages) == 80


def test_no_thread_is_started():
    before = threading.active_count()
    with httpx2.Client(transport=SimulatorTransport(Registry()), headers=HEADERS) as client:
        client.get(URL)

    assert threading.active_count() == before


def test_a_process_that_forgets_to_close_still_ends():
    program = (
        "import httpx2\n"
        "from scan_pipeline.simulator.registry import Registry\n"
        "from scan_pipeline.simulator.transport import SimulatorTransport\n"
        "client = httpx2.Client(transport=SimulatorTransport(Registry(size=10)))\n"
        f"print(client.get({URL!r}, headers={HEADERS!r}).status_code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "200\n"


def test_the_application_speaks_plain_asgi(numbered):
    """Whoever brings another ASGI server or transport needs nothing of ours."""
    import asyncio

    from scan_pipeline.simulator.app import create_app

    async def first_page():
        transport = httpx2.ASGITransport(create_app(Registry(size=10)))
        async with httpx2.AsyncClient(transport=transport, headers=HEADERS) as client:
            return (await client.get("http://registry/v1/customers")).json()

    assert numbered(asyncio.run(first_page())) == list(range(1, 11))
