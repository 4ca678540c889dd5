import os
import signal
import subprocess
import sys
import threading
import time

import httpx2

from scan_pipeline.simulator.answer_faults import Delayed
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.server import running

HEADERS = {"authorization": f"Bearer {AUDITOR_TOKEN}"}


def test_a_server_accepts_connections_at_once_and_none_afterwards():
    with running(Registry(size=10)) as url:
        assert httpx2.get(f"{url}/v1/customers", headers=HEADERS).status_code == 200

    try:
        httpx2.get(f"{url}/v1/customers", headers=HEADERS, timeout=1)
    except httpx2.ConnectError:
        return
    raise AssertionError("the port still answers")


def test_a_server_leaves_no_thread_behind():
    before = threading.active_count()
    with running(Registry(size=10)) as url:
        httpx2.get(f"{url}/v1/identity", headers=HEADERS)

    assert threading.active_count() == before


def test_one_hanging_answer_holds_up_neither_others_nor_the_end():
    script = Script(faults=(Delayed(page=1, seconds=600, last_attempt=1),))
    registry = Registry(size=10, script=script)
    outcomes = []

    def wait_for_it(url):
        outcomes.append(httpx2.get(f"{url}/v1/customers", headers=HEADERS, timeout=300).status_code)

    with running(registry) as url:
        waiting = threading.Thread(target=wait_for_it, args=(url,))
        waiting.start()
        while not registry.served.pages:
            time.sleep(0.005)
        assert httpx2.get(f"{url}/v1/customers", headers=HEADERS).status_code == 200
        assert waiting.is_alive()
    waiting.join()

    assert outcomes == [500]


def test_serve_announces_its_address_and_ends_on_a_signal():
    program = (
        "from scan_pipeline.simulator.registry import Registry\n"
        "from scan_pipeline.simulator.server import serve\n"
        "serve(Registry(size=10), announce=lambda url: print(url, flush=True))\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        status = httpx2.get(f"{url}/v1/customers", headers=HEADERS, timeout=20).status_code
        os.kill(server.pid, signal.SIGTERM)
        server.wait(timeout=20)

    assert status == 200
