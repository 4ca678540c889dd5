"""One scenario of the simulator, read by a naive client and by us, side by side."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final

import httpx2

from scan_pipeline.cli.account import words
from scan_pipeline.cli.analysis import Outcome, analyse
from scan_pipeline.cli.explanation import Explanation, explain
from scan_pipeline.cli.output import answer, print_table
from scan_pipeline.core.expectations import Expectations, IdSequence
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.source_facts import HighWaterMarkFacts
from scan_pipeline.core.value import record
from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.naive import NaiveReport
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.scenario import Scenario, naive_report, registry_for
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.sources.http.end_signals import EndSignal
from scan_pipeline.sources.page_token import PageTokenSource
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline.stages.workspace import SAMPLE_TOKEN, Workspace
from scan_pipeline.store.project import Project

CUSTOMERS_URL: Final = "simulator://registry/v1/customers"

SIGNALS: Final[Mapping[str, EndSignal]] = MappingProxyType(
    {
        "final_page_without_cursor": EndSignal(word="absent"),
        "signals_disagree": EndSignal(at=("page", "is_complete"), word="equals", value=True),
    }
)
"""End signals that a scenario's source documents besides the one of the sample scan."""

ROOM: Final = 0.5
"""Share over the count that a small population may take: 10 % of ten pages is one short page."""


@record
class Demonstration:
    """What came of one scenario.

    Attributes:
        scenario: what happened.
        naive: what a naive client says.
        receipt: our account.
        explanation: the same explained.
        analysis: the shipped analysis, unlocked or refused.
        as_expected: whether we called it verified exactly where that is right.
    """

    scenario: Scenario
    naive: NaiveReport
    receipt: Receipt
    explanation: Explanation
    analysis: Outcome | None
    as_expected: bool

    def as_json(self) -> dict[str, Any]:
        """Return the demonstration as plain values."""
        return {
            "scenario": self.scenario.name,
            "note": self.scenario.note,
            "naive": dict(self.naive.__dict__),
            "coverage_status": self.receipt.coverage_status,
            "conclusion_scope": self.receipt.conclusion_scope,
            "accepted": self.receipt.accepted,
            "missing_id_ranges": list(self.receipt.missing_id_ranges),
            "explanation": self.explanation.as_json(),
            "analysis": None if self.analysis is None else self.analysis.as_json(),
            "as_expected": self.as_expected,
        }


def demonstrate(
    scenario: Scenario, *, sleep: Callable[[float], None] = time.sleep
) -> Demonstration:
    """Let a scenario happen twice: to a naive client, and to a scan in a lake of its own.

    Args:
        scenario: what happens.
        sleep: waits so many seconds.
    """
    with httpx2.Client(
        transport=SimulatorTransport(registry_for(scenario), sleep=sleep),
        headers={"authorization": f"Bearer {AUDITOR_TOKEN}"},
    ) as client:
        naive = naive_report(scenario, client, CUSTOMERS_URL)
    scan = scan_for(scenario, shipped_scan("customers").parse())
    with TemporaryDirectory(prefix="scan-pipeline-") as folder:
        workspace = Workspace(
            _throw_away(Path(folder)),
            environ={SAMPLE_TOKEN: AUDITOR_TOKEN},
            inner=_KeptOpen(SimulatorTransport(registry_for(scenario), sleep=sleep)),
            sleep=sleep,
        )
        stored = run_scan(scan, workspace=workspace).stored
        analysis = next(iter(analyse(stored, scan, workspace=workspace)), None)
    verified = stored.receipt.coverage_status == "verified"
    return Demonstration(
        scenario=scenario,
        naive=naive,
        receipt=stored.receipt,
        explanation=explain(stored.receipt),
        analysis=analysis,
        as_expected=verified == scenario.may_verify,
    )


def scan_for(scenario: Scenario, scan: Scan) -> Scan:
    """Return the sample scan, asking the scenario's question instead of for every customer.

    A filter, an order or a live view takes away what is known of the whole collection: the id
    sequence and the counts by region. An upper bound is read from the source, as a mark.
    """
    source, contract = scan.source, scan.contract
    if not isinstance(source, PageTokenSource):
        return scan
    if scenario.size < CUSTOMERS:
        contract = replace(contract, limits=replace(contract.limits, over_count=ROOM))
    if scenario.name in SIGNALS:
        signals = (*source.next.ends_when, SIGNALS[scenario.name])
        source = replace(source, next=replace(source.next, ends_when=signals))
    if not scenario.query:
        return replace(scan, source=source, contract=contract)
    query = dict(scenario.query)
    bound = query.pop("up_to", None)
    source = replace(source, params=query, partition_counts=None)
    expect = Expectations()
    if bound is not None:
        mark = HighWaterMarkFacts(
            url=f"{CUSTOMERS_URL}/high_water_mark",
            at=("high_water_mark",),
            send_as="up_to",
            basis="provider_documented",
        )
        source = replace(source, snapshot=None, high_water_mark=mark)
        expect = Expectations(
            id_sequence=IdSequence(field="customer_id", prefix="customer-", first=1, last="count")
        )
        accept = replace(contract.accept, scope="all_records_up_to_high_water_mark")
        contract = replace(contract, consistency="high_water_mark", accept=accept)
    return replace(scan, source=source, contract=replace(contract, expect=expect))


def print_demonstration(shown: Demonstration) -> None:
    """Give the scenario, both answers side by side, and what they mean."""
    answer(f"{shown.scenario.name}: {shown.scenario.note}")
    answer()
    receipt, naive = shown.receipt, shown.naive
    first = shown.explanation.first
    print_table(
        ("", "a naive client", "scan_pipeline"),
        [
            ("pages", naive.pages, receipt.pages_observed),
            ("records", naive.records, receipt.records_observed),
            ("unique keys", None, receipt.unique_ids_observed),
            ("expected", naive.expected_count, receipt.records_expected),
            ("missing", None, ", ".join(receipt.missing_id_ranges) or None),
            ("coverage", None, receipt.coverage_status),
            ("says", naive.sentence, receipt.statement),
            ("because", None, None if first is None else _because(shown)),
            ("analysis", None, None if shown.analysis is None else shown.analysis.word()),
        ],
    )
    answer(f"Why it matters: {shown.explanation.why}.")
    right = "as it should be" if shown.as_expected else "NOT what this scenario calls for"
    answer(f"Our answer is {words(receipt.coverage_status)}, {right}.")


def _because(shown: Demonstration) -> str:
    first = shown.explanation.first
    if first is None:
        return "-"
    where = f" on page {first.page:,}" if first.page else ""
    told = f": expected {first.expected}, found {first.found}" if first.found is not None else ""
    return f"{words(first.what)}{where}{told}"


class _KeptOpen(httpx2.BaseTransport):
    """One registry for all attempts of a scan, each of which closes its transport."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._inner.handle_request(request)


def _throw_away(folder: Path) -> Project:
    return Project(
        lake=str(folder / "lake"),
        keys=folder / "keys",
        trust=folder / "trust.json",
        dagster_home=folder / "dagster_home",
        root=None,
    )
