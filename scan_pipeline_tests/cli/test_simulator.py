"""`simulator`: the registry on a port, the catalogue, and the broken walk of the README."""

import json
import signal

import httpx2
import pytest

from scan_pipeline.cli.demonstration import demonstrate
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.scenarios import SCENARIOS
from scan_pipeline_tests.cli.conftest import CommandLine


def test_broken_walk_is_shown_beside_what_a_naive_client_says(scan_pipeline: CommandLine) -> None:
    """The README's third command."""
    result = scan_pipeline("simulator", "break")
    text = " ".join(result.stdout.split())

    assert result.exit_code == 0, result.output
    assert "failed" in text
    assert "customer-4100..customer-4199" in text
    assert "nothing is missing" in text
    assert "refused" in text


def test_broken_walk_leaves_the_lake_alone(scan_pipeline: CommandLine) -> None:
    scan_pipeline("simulator", "break", "one_customer")

    assert not (scan_pipeline.folder / "data").exists()


def test_broken_walk_as_json(scan_pipeline: CommandLine) -> None:
    answer = scan_pipeline.json("simulator", "break", "page_skipped_count_matches")

    assert answer["naive"]["records"] == answer["naive"]["expected_count"] == 8_742
    assert answer["coverage_status"] == "failed"
    assert answer["missing_id_ranges"] == ["customer-4100..customer-4199"]
    assert answer["analysis"]["claim"] is None
    assert "failed" in answer["analysis"]["refused"]


QUICK = frozenset(
    {
        "final_page_without_cursor",
        "signals_disagree",
        "snapshot_expires",
        "mutable_filter",
        "appended_behind_bound",
        "one_not_conforming",
        "no_customer",
    }
)
"""Where the sample scan is changed for the scenario, or the outcome is a special one."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in SCENARIOS],
)
def test_scenario_ends_as_it_calls_for(name: str) -> None:
    """Verified exactly where that is right; the naive client says its sentence all the same."""
    shown = demonstrate(SCENARIOS[name], sleep=lambda _: None)

    assert shown.as_expected, shown.receipt.reasons
    assert shown.naive.sentence == SCENARIOS[name].naive_claim


def test_unknown_scenario_is_two(scan_pipeline: CommandLine) -> None:
    assert scan_pipeline("simulator", "break", "nonsense").exit_code == 2


def test_scenarios_are_listed(scan_pipeline: CommandLine) -> None:
    assert [each["name"] for each in scan_pipeline.json("simulator", "scenarios")] == [*SCENARIOS]
    assert "two_walkers" in scan_pipeline("simulator", "scenarios").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_registry_is_served_until_it_is_asked_to_end(
    scan_pipeline: CommandLine, number: signal.Signals
) -> None:
    script = scan_pipeline.folder / "script.yaml"
    script.write_text("faults: [{kind: short_page, page: 1, rows: 7}]\n", encoding="utf-8")
    process = scan_pipeline.start("simulator", "serve", "--port", "0", "--script", str(script))
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    page = httpx2.get(f"{url}/v1/customers", headers={"authorization": f"Bearer {AUDITOR_TOKEN}"})
    process.send_signal(number)
    process.communicate(timeout=30)

    assert len(json.loads(page.content)["items"]) == 7
    assert process.returncode == 0


@pytest.mark.parametrize("text", ["faults: [{kind: nonsense, page: 1}]", "[]", "a: [", "faults: 7"])
def test_script_that_is_none_is_two(scan_pipeline: CommandLine, text: str) -> None:
    script = scan_pipeline.folder / "script.yaml"
    script.write_text(text, encoding="utf-8")

    assert scan_pipeline("simulator", "serve", "--script", str(script)).exit_code == 2
