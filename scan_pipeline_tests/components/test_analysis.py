"""Analyses are handed a collection that its receipt opened, or refuse: in every run."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.components.analysis import partial_asset, verified_asset
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
TOTAL, SEEN = [["analyses", "total"]], [["analyses", "seen"]]


def test_accepted_generation_opens_in_the_same_run(station: Callable[..., Any]) -> None:
    """Stages and analyses in one run: the output carries the receipt."""
    opened = station()
    ran = opened.run()

    assert ran.success
    told = ran.told("analyses/total")
    assert told["rows"] == 1000
    stored = opened.receipt()
    assert told["scan_pipeline/receipt_id"] == stored.receipt_id
    assert told["scan_pipeline/statement"] == stored.receipt.statement
    assert told["scan_pipeline/coverage_status"] == "verified"
    assert told["scan_pipeline/conclusion_scope"] == "all_records_in_snapshot"


def test_accepted_generation_opens_in_a_later_run(station: Callable[..., Any]) -> None:
    """The analysis alone, long after: the receipt in the lake decides."""
    opened = station()
    opened.stages()

    assert opened.run(only=TOTAL).told("analyses/total")["rows"] == 1000


@pytest.mark.parametrize("name", ["page_skipped", "cursor_repeats_page_three", "pin_not_honoured"])
def test_failed_generation_opens_in_no_run(station: Callable[..., Any], name: str) -> None:
    """In the stages' own run, in a later one, and with the analysis alone."""
    opened = station(scenario(name))

    same = opened.run()
    later = opened.run(only=[["customers", "receipt"], *TOTAL])
    alone = opened.run(only=TOTAL)

    assert not {"analyses/total", "analyses/seen"} & {*same.made, *later.made, *alone.made}
    assert set(same.failures) == set(later.failures) == {"customers__receipt"}
    assert f"customers {NIGHT}: coverage is failed" in alone.failures["analyses__total"]
    assert "expected verified" in alone.failures["analyses__total"]


def test_refusal_names_generation_and_reason(station: Callable[..., Any]) -> None:
    """A failure that the UI shows with its facts, and that no retry policy repeats."""
    opened = station(scenario("page_skipped"))
    opened.stages()
    ran = opened.run(only=TOTAL)

    data = next(e.step_failure_data for e in ran.result.all_events if e.is_step_failure)
    facts = {name: value.value for name, value in data.user_failure_data.metadata.items()}
    assert facts["scan"] == "customers"
    assert facts["generation"] == NIGHT
    assert "failed" in facts["reason"]


def test_generation_without_receipt_opens_to_nobody(station: Callable[..., Any]) -> None:
    """Staged records are there; without a receipt they are no collection."""
    opened = station()
    opened.run(only=[["customers", "pages"], ["customers", "records"]])
    ran = opened.run(only=[*TOTAL, *SEEN])

    assert "no receipt" in ran.failures["analyses__total"] + ran.failures.get("analyses__seen", "")
    assert ran.made == []


def test_one_accepted_generation_does_not_open_another(
    station: Callable[..., Any], bench: Any
) -> None:
    """Each partition is its own generation; last night's receipt says nothing of tonight."""
    registry = bench.registry()
    opened = station(registry)
    opened.run()
    limited = station(registry, {"contract.limits": {"pages": 3}}, workspace=opened.workspace)
    limited.stages(NEXT_NIGHT)
    ran = limited.run(NEXT_NIGHT, only=TOTAL)

    assert ran.made == []
    assert "unknown, observed_pages_only" in ran.failures["analyses__total"]


def test_receipt_of_another_contract_opens_nothing(station: Callable[..., Any], bench: Any) -> None:
    """The scan's filter was changed since: the old generation is another population."""
    registry = bench.registry()
    opened = station(registry)
    opened.stages()
    changed = station(registry, {"source.params": {"region": "eu"}}, workspace=opened.workspace)
    ran = changed.run(only=TOTAL)

    assert "another contract" in ran.failures["analyses__total"]


def test_generation_that_is_too_old_is_refused_and_a_late_one_says_so(
    station: Callable[..., Any], bench: Any
) -> None:
    """An analysis of three nights later: one bounds the age, the other tells it."""
    opened = station()
    opened.stages()

    @verified_asset(scan="customers", max_age=timedelta(hours=36))
    def bounded(customers: VerifiedCollection) -> None:
        raise AssertionError(customers)

    opened.definitions = dg.Definitions.merge(
        opened.definitions, dg.Definitions(assets=[bounded], executor=dg.in_process_executor)
    )
    fresh = opened.run(only=TOTAL).told("analyses/total")
    bench.clock.sleep(72 * 3600)
    ran = opened.run(only=[*TOTAL, ["bounded"]])
    told = ran.told("analyses/total")

    assert (fresh["scan_pipeline/late"], told["scan_pipeline/late"]) == (False, True)
    assert told["scan_pipeline/age_seconds"] == 72 * 3600
    assert set(ran.failures) == {"bounded"}
    assert "expected at most 1 day, 12:00:00" in ran.failures["bounded"]


def test_altered_records_open_nothing(station: Callable[..., Any]) -> None:
    """The receipt is in order and the rows are gone: the analysis refuses."""
    opened = station()
    opened.stages()
    store = opened.workspace.store("customers", NIGHT)
    for uri in store.records().file_uris(NIGHT):
        Path(uri).write_bytes(Path(uri).read_bytes() + b"x")
    ran = opened.run(only=TOTAL)

    assert "bytes; expected" in ran.failures["analyses__total"]


def test_partial_reads_what_was_seen_and_says_so(station: Callable[..., Any]) -> None:
    """A limit stopped the walk: the partial analysis runs, labelled row by row."""
    opened = station(None, {"contract.limits": {"pages": 3}})
    opened.stages()
    ran = opened.run(only=[*TOTAL, *SEEN])

    told = ran.told("analyses/seen")
    assert told["rows"] == 300
    assert told["label"] == ["unknown", "observed_pages_only"]
    assert told["partition"] == NIGHT
    assert "analyses__total" in ran.failures


def test_partial_does_not_read_a_failed_generation(station: Callable[..., Any]) -> None:
    """Evidence that disagrees opens to nobody."""
    opened = station(scenario("page_skipped"))
    opened.stages()

    assert "opens to nobody" in opened.run(only=SEEN).failures["analyses__seen"]


def test_partial_wants_at_least_its_scope(station: Callable[..., Any]) -> None:
    """Pages observed are less than a live traversal to the end."""

    @partial_asset(
        scan="customers", accept="records_encountered_in_live_traversal", key=["analyses", "met"]
    )
    def met(customers: PartialCollection) -> None:
        """Count nothing."""

    opened = station(None, {"contract.limits": {"pages": 3}})
    opened.stages()
    opened.definitions = dg.Definitions.merge(opened.definitions, dg.Definitions(assets=[met]))
    ran = opened.run(only=[["analyses", "met"]])

    assert "expected at least records_encountered" in ran.failures["analyses__met"]


def test_function_keeps_context_config_and_other_dependencies(station: Callable[..., Any]) -> None:
    """What an asset takes besides the collection reaches it as in any asset."""

    class Least(dg.Config):
        balance: int = 0

    class Named(dg.ConfigurableResource):
        name: str

    @dg.asset(key=["analyses", "thresholds"])
    def thresholds() -> int:
        return 3

    @verified_asset(
        scan="customers",
        key=["analyses", "rich"],
        deps=[["analyses", "thresholds"]],
        metadata={"kept": "yes"},
    )
    def rich(
        context: dg.AssetExecutionContext,
        config: Least,
        named: Named,
        customers: VerifiedCollection,
    ) -> dg.MaterializeResult:
        """Count the rich."""
        return dg.MaterializeResult(
            metadata={
                "told": [context.partition_key, config.balance, named.name, customers.word()],
            }
        )

    opened = station()
    opened.stages()
    opened.definitions = dg.Definitions.merge(
        opened.definitions,
        dg.Definitions(assets=[rich, thresholds], resources={"named": Named(name="n")}),
    )
    told = opened.run(only=[["analyses", "rich"]]).told("analyses/rich")
    spec = rich.specs_by_key[dg.AssetKey(["analyses", "rich"])]

    assert told["told"] == [NIGHT, 0, "n", opened.receipt().receipt.statement]
    assert {dep.asset_key.to_user_string() for dep in spec.deps} == {
        "customers/receipt",
        "analyses/thresholds",
    }
    assert spec.description == "Count the rich."
    assert spec.metadata["kept"] == "yes"


def test_resources_by_key_and_the_scan_itself_reach_the_function(
    station: Callable[..., Any],
) -> None:
    """Either way of asking for resources that Dagster knows, the scan's own among them."""

    @verified_asset(scan="customers", key=["analyses", "keyed"], required_resource_keys={"other"})
    def keyed(
        context: dg.AssetExecutionContext, customers: VerifiedCollection
    ) -> dg.MaterializeResult:
        """Read nothing."""
        return dg.MaterializeResult(metadata={"told": context.resources.other})

    @verified_asset(scan="customers", key=["analyses", "asking"])
    def asking(
        customers: VerifiedCollection, scan_customers: dg.ResourceParam[ScanResource]
    ) -> dg.MaterializeResult:
        """Read nothing."""
        return dg.MaterializeResult(metadata={"told": scan_customers.scan.name})

    opened = station()
    opened.stages()
    opened.definitions = dg.Definitions.merge(
        opened.definitions, dg.Definitions(assets=[keyed, asking], resources={"other": "here"})
    )
    ran = opened.run(only=[["analyses", "keyed"], ["analyses", "asking"]])

    assert ran.told("analyses/keyed")["told"] == "here"
    assert ran.told("analyses/asking")["told"] == "customers"


def test_plain_return_value_is_an_output_with_the_receipt(
    station: Callable[..., Any], tmp_path: Any
) -> None:
    """A function that returns a value and no result has it stored, and the metadata added."""

    @verified_asset(scan="customers", key=["analyses", "number"])
    def number(customers: VerifiedCollection) -> int:
        """Return how many there are."""
        return customers.arrow().num_rows

    opened = station()
    opened.stages()
    kept = dg.FilesystemIOManager(base_dir=str(tmp_path / "kept"))
    opened.definitions = dg.Definitions.merge(
        opened.definitions, dg.Definitions(assets=[number], resources={"io_manager": kept})
    )
    ran = opened.run(only=[["analyses", "number"]])

    assert ran.result.output_for_node("analyses__number") == 1000
    told = ran.told("analyses/number")
    assert told["scan_pipeline/receipt_id"] == opened.receipt().receipt_id


@pytest.mark.parametrize("wanted", [True, False])
def test_function_may_yield_its_result_or_nothing(
    station: Callable[..., Any], wanted: bool
) -> None:
    """An analysis that has nothing to do materializes nothing, and its run succeeds."""

    @verified_asset(scan="customers", key=["analyses", "maybe"], output_required=False)
    def maybe(customers: VerifiedCollection) -> Iterator[dg.MaterializeResult]:
        """Count, where it is wanted."""
        if wanted:
            yield dg.MaterializeResult(metadata={"rows": customers.arrow().num_rows})

    opened = station()
    opened.stages()
    opened.definitions = dg.Definitions.merge(opened.definitions, dg.Definitions(assets=[maybe]))
    ran = opened.run(only=[["analyses", "maybe"]])

    assert ran.success
    assert ran.made == (["analyses/maybe"] if wanted else [])
    if wanted:
        told = ran.told("analyses/maybe")
        assert told["scan_pipeline/receipt_id"] == opened.receipt().receipt_id


def test_scan_under_a_prefix_is_found() -> None:
    """The project gave its assets a prefix: the analysis depends on the receipt under it."""

    @verified_asset(scan="customers", scan_key_prefix=["bronze"], key="prefixed")
    def prefixed(customers: VerifiedCollection) -> None:
        """Read nothing."""

    spec = prefixed.specs_by_key[dg.AssetKey("prefixed")]
    assert [dep.asset_key.path for dep in spec.deps] == [["bronze", "customers", "receipt"]]


def test_function_without_a_collection_is_refused_at_once() -> None:
    """An analysis that takes no collection would be ungated; so would one with its name alone."""

    def bare() -> None:
        """Take nothing."""

    def quoted(customers: "VerifiedCollection") -> None:
        """Take a name."""

    def lesser(customers: PartialCollection) -> None:
        """Take the other type."""

    for function in (bare, quoted, lesser):
        with pytest.raises(ContractError, match="annotated VerifiedCollection; expected one"):
            verified_asset(scan="customers")(function)


def test_partitions_of_ones_own_are_refused() -> None:
    """The generation is the partition; another would read another one's receipt."""

    def daily(customers: VerifiedCollection) -> None:
        """Read nothing."""

    with pytest.raises(ContractError, match="customers_generations"):
        verified_asset(
            scan="customers",
            partitions_def=dg.DailyPartitionsDefinition(start_date="2026-01-01"),
        )(daily)
