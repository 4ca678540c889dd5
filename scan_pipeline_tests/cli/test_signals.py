"""A signal ends the walk and leaves a receipt; the process says so by its exit code."""

import json
import signal
import threading
from collections.abc import Iterator

import pytest

from scan_pipeline.simulator.faults import Delayed, Failing
from scan_pipeline_tests.cli.conftest import CommandLine, registry


def after_first_line(lines: Iterator[str]) -> str:
    return next(lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signal_closes_the_walk_as_cancelled(
    scan_pipeline: CommandLine, number: signal.Signals
) -> None:
    """Sent after the first page was admitted, while the second one is on its way."""
    with registry(Delayed(page=2, through="end", seconds=1), size=2_000) as url:
        process = scan_pipeline.start("run", scan_pipeline.scan_file(url), "--json")
        assert process.stderr is not None
        assert after_first_line(iter(process.stderr)).startswith("1 page, 100 records")
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)

    assert process.returncode == 1, errors
    receipt = json.loads(out)["receipt"]
    assert (receipt["traversal"], receipt["stop_reason"]) == ("cancelled", "cancelled")
    assert receipt["pages_observed"] < 20
    assert "asked to end" in errors


def test_signal_wakes_whoever_waits_for_the_source(scan_pipeline: CommandLine) -> None:
    """The source asks for a minute and a half of patience; nobody waits for that."""
    patience = Failing(page=2, status=429, retry_after_s=90)
    with registry(patience, size=300) as url:
        process = scan_pipeline.start("run", scan_pipeline.scan_file(url), "--json")
        assert process.stderr is not None
        after_first_line(iter(process.stderr))
        threading.Timer(1.0, process.send_signal, (signal.SIGTERM,)).start()
        out, errors = process.communicate(timeout=60)

    assert process.returncode == 1, errors
    receipt = json.loads(out)["receipt"]
    assert (receipt["stop_reason"], receipt["pages_observed"]) == ("cancelled", 1)


def test_second_signal_ends_at_once_and_the_next_run_takes_the_walk_up(
    scan_pipeline: CommandLine,
) -> None:
    slow = Delayed(page=2, last_attempt=1, seconds=30)
    with registry(slow, size=300) as url:
        file = scan_pipeline.scan_file(url)
        process = scan_pipeline.start("run", file)
        assert process.stderr is not None
        after_first_line(iter(process.stderr))
        for wait in (0.5, 1.0):
            threading.Timer(wait, process.send_signal, (signal.SIGTERM,)).start()
        process.communicate(timeout=60)
        again = scan_pipeline("run", file)

    assert process.returncode == -signal.SIGTERM
    assert again.exit_code == 0, again.output
    assert len(scan_pipeline.json("generations", "shop")) == 1, again.output
