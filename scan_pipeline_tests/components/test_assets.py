"""The four assets of a generation, right and wrong."""

import re
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.sources.face_settings import FaceSettings

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
KEYS = [f"customers/{stage}" for stage in ("pages", "records", "reconciliation", "receipt")]


def test_clean_generation_passes_every_check(station: Callable[..., Any]) -> None:
    """Nothing happens: four assets, eight checks, an accepted receipt."""
    ran = station().stages()

    assert ran.success
    assert ran.made == KEYS
    assert ran.verdicts == dict.fromkeys(
        (
            "walk_finished",
            "chain_intact",
            "ledger_conforms",
            "keys_readable",
            "records_conform",
            "keys_unique",
            "expectations_met",
            "receipt_accepted",
        ),
        True,
    )
    assert {each.partition for each in ran.checks.values()} == {NIGHT}
    assert [name for name, each in ran.checks.items() if each.blocking] == ["receipt_accepted"]


def test_assets_report_their_numbers(station: Callable[..., Any]) -> None:
    """What people look at: counts, columns, tables, the sentence and where it lies."""
    opened = station()
    ran = opened.stages()

    pages, records, figures, receipt = (ran.told(key) for key in KEYS)
    assert (pages["pages"], pages["records"], pages["dagster/row_count"]) == (10, 1000, 12)
    assert records["dagster/row_count"] == 1000
    named = {column.name: column.type for column in records["dagster/column_schema"].columns}
    assert named["balance"] == "decimal128(18, 2)"
    assert figures["unique_keys"] == 1000
    stored = opened.receipt()
    assert receipt["scan_pipeline/statement"] == stored.receipt.statement
    assert receipt["scan_pipeline/receipt_id"] == stored.receipt_id
    assert receipt["merkle_root"] == figures["root"] == stored.receipt.merkle.root
    assert Path(receipt["receipt"]).is_file()
    assert receipt["published"]


def test_ledger_metadata_shows_no_token(station: Callable[..., Any]) -> None:
    """Pages are confidential: what the run tells of them holds neither cursor nor body."""
    opened = station()
    ran = opened.stages()

    shown = str(ran.told("customers/pages")) + str([c.metadata for c in ran.checks.values()])
    assert "customer-1" not in shown
    assert "next_cursor" not in shown


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("cursor_repeats_page_three", {"walk_finished"}),
        ("page_skipped", {"expectations_met"}),
        ("one_not_conforming", {"records_conform"}),
        ("one_without_key", {"keys_readable", "expectations_met"}),
    ],
)
def test_failing_scan_runs_through_to_its_receipt(
    station: Callable[..., Any], name: str, failing: set[str]
) -> None:
    """Whatever breaks, every stage runs; only the receipt's verdict fails the run."""
    opened = station(scenario(name))
    ran = opened.stages()

    assert not ran.success
    assert ran.made == KEYS
    assert {check for check, passed in ran.verdicts.items() if not passed} >= {
        *failing,
        "receipt_accepted",
    }
    assert set(ran.failures) == {"customers__receipt"}
    assert not opened.receipt().receipt.accepted


def test_limit_is_a_warning_and_the_receipt_an_error(station: Callable[..., Any]) -> None:
    """An interrupted walk is no broken one: its check warns, the contract's verdict decides."""
    ran = station(None, {"contract.limits": {"pages": 3}}).stages()

    checks = ran.checks
    assert not ran.success
    assert not checks["walk_finished"].passed
    assert checks["walk_finished"].severity.value == "WARN"
    assert checks["expectations_met"].severity.value == "WARN"
    assert checks["receipt_accepted"].severity.value == "ERROR"


def test_failed_night_keeps_the_published_one(station: Callable[..., Any], bench: Any) -> None:
    """The second night fails; whoever reads the published table reads the first."""
    registry = bench.registry()
    opened = station(registry)
    assert opened.stages().success
    broken = station(
        registry, {"contract.limits": {"pages": 3}}, workspace=opened.workspace
    ).stages(NEXT_NIGHT)

    assert not broken.success
    published = pl.read_delta(f"{opened.workspace.project.lake}/published/customers")
    assert published["scan_generation"].unique().to_list() == [NIGHT]
    assert published.height == 1000


def test_sealed_generation_is_told_again_and_not_written(station: Callable[..., Any]) -> None:
    """A second run of a generation computes, compares, and leaves the receipt as it is."""
    opened = station()
    first = opened.stages()
    before = opened.receipt()
    second = opened.stages()

    assert second.success
    assert opened.receipt() == before
    for key in KEYS[:3]:
        assert second.told(key) == first.told(key)
    again = second.told("customers/receipt")
    assert first.told("customers/receipt")["scan_pipeline/certified_here"]
    assert not again["scan_pipeline/certified_here"]
    assert not again["published"]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("records", "materialize pages"),
        ("reconciliation", "materialize pages"),
        ("receipt", "materialize pages"),
    ],
)
def test_stage_alone_says_what_it_rests_on(
    station: Callable[..., Any], only: str, expected: str
) -> None:
    """A stage whose forerunner never ran refuses; it certifies nothing."""
    opened = station()
    ran = opened.run(only=[["customers", only]])

    assert expected in ran.failures[f"customers__{only}"]
    assert not opened.opened.pipeline(NIGHT).is_sealed()


@pytest.mark.parametrize("only", ["reconciliation", "receipt"])
def test_receipt_is_not_issued_over_records_that_were_not_staged(
    station: Callable[..., Any], only: str
) -> None:
    """Pages alone give no receipt, or a collection would be called short for a stage not run."""
    opened = station()
    opened.stages()
    opened.run(NEXT_NIGHT, only=[["customers", "pages"]])
    ran = opened.run(NEXT_NIGHT, only=[["customers", only]])

    assert "materialize records" in ran.failures[f"customers__{only}"]
    assert not opened.opened.pipeline(NEXT_NIGHT).is_sealed()


def test_stages_in_runs_of_their_own_come_to_the_same_root(station: Callable[..., Any]) -> None:
    """One stage a run, as a user may click them."""
    together, apart = station(), station()
    together.stages()
    for stage in ("pages", "records", "reconciliation", "receipt"):
        assert apart.run(only=[["customers", stage]]).success

    assert apart.receipt().receipt.merkle == together.receipt().receipt.merkle
    assert apart.receipt().receipt.accepted


def test_missing_secret_is_a_failure_in_words(station: Callable[..., Any], bench: Any) -> None:
    """The message names the variable; there is no walk and no receipt."""
    place = bench.workspace(bench.registry(), environ={})
    opened = station(None, {"source.auth": {"bearer": {"env": "OTHER_TOKEN"}}}, workspace=place)
    ran = opened.stages()

    assert "OTHER_TOKEN" in ran.failures["customers__pages"]
    assert ran.made == []


def test_settings_place_the_assets(station: Callable[..., Any]) -> None:
    """A project gives prefix, group, owners and pool; nothing of it reaches the scan."""
    settings = FaceSettings(
        key_prefix=("bronze",), group="intake", owners=("team:data",), pool="registry"
    )
    graph = station(settings=settings).definitions.resolve_asset_graph()

    made = [graph.get(key) for key in graph.get_all_asset_keys() if key.path[-1] == "receipt"]
    (node,) = [each for each in made if each.is_executable]
    assert node.key.path == ["bronze", "customers", "receipt"]
    assert node.group_name == "intake"
    assert node.owners == ["team:data"]
    assert node.pools == {"registry"}


def test_receipt_shows_checks_and_plots(station: Callable[..., Any]) -> None:
    """A failed night: each check with its result; images that hold their own colours and script no
    one, with the figures below them."""
    opened = station(scenario("page_skipped"), settings=FaceSettings())
    ran = opened.stages()

    told, walk = ran.told("customers/receipt"), ran.told("customers/pages")
    checks = {each.data["check"]: each.data["result"] for each in told["checks"].records}
    judged = {name: "passed" if passed else "failed" for name, passed in ran.verdicts.items()}
    del judged["ledger_conforms"]  # of the table itself: no receipt tells it
    assert checks == judged
    for name, plot in (
        ("expected_against_observed", told["expected_against_observed"]),
        ("pages_over_time", walk["pages_over_time"]),
    ):
        drawn = re.search(rf"!\[{name}\]\(data:image/svg\+xml;base64,([^)]+)\)", plot)
        assert drawn is not None
        image = b64decode(drawn[1]).decode()
        assert image.startswith("<svg")
        assert "var(" not in image
        assert "| ---" in plot
    assert "records_by_night" not in told  # it stands alone
