"""The asset checks of a scan: what each stage is held to, evaluated per generation.

Only `receipt_accepted` blocks, so that a scan that goes wrong still ends in a receipt. All are
partitioned: an unpartitioned check would let the verdict on one generation release another.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import dagster as dg

from scan_pipeline.components.face import STAGES, Face, Stage
from scan_pipeline.components.metadata import expectations_table, receipt_facts, table
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import Receipt, last_stop_reason
from scan_pipeline.core.reconciliation import Reconciliation
from scan_pipeline.core.value import record
from scan_pipeline.stages.reconciling.evidence import check_chain
from scan_pipeline.stages.reconciling.ledger_schema import LedgerFault
from scan_pipeline.store.events import Event
from scan_pipeline.store.receipts import StoredReceipt

CheckName = Literal[
    "walk_finished",
    "chain_intact",
    "ledger_conforms",
    "keys_readable",
    "records_conform",
    "keys_unique",
    "expectations_met",
    "receipt_accepted",
]

DESCRIPTIONS: Final[Mapping[Stage, Mapping[CheckName, str]]] = {
    "pages": {
        "walk_finished": "The walk reached the end that the source declares.",
        "chain_intact": "Every event links to the one before it.",
        "ledger_conforms": "Every event has the form of the ledger's model.",
    },
    "records": {
        "keys_readable": "Every record has its key.",
        "records_conform": "No more records than the contract accepts fail the record schema.",
    },
    "reconciliation": {
        "keys_unique": "No key came twice, but for repeats that the contract allows.",
        "expectations_met": "What is known of the whole beside the walk was met by unique keys.",
    },
    "receipt": {
        "receipt_accepted": "The receipt says at least what the contract accepts.",
    },
}

BLOCKING: Final[CheckName] = "receipt_accepted"

_PREVIEW: Final = "Specifying a partitions_def on an AssetCheckSpec"
"""The one preview feature we rest on (dagster 1.13, AssetCheckSpec(partitions_def=...))."""


@record
class Extracted:
    """Records of a generation by what became of them."""

    records: int
    nonconforming: int
    without_key: int


def check_specs(face: Face, stage: Stage) -> list[dg.AssetCheckSpec]:
    """Return the checks of a stage's asset."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=f".*{_PREVIEW}.*")
        return [
            dg.AssetCheckSpec(
                name,
                asset=face.key(stage),
                description=description,
                blocking=name == BLOCKING,
                partitions_def=face.partitions,
            )
            for name, description in DESCRIPTIONS[stage].items()
        ]


def pages_checks(
    events: Sequence[Event], faults: Sequence[LedgerFault]
) -> list[dg.AssetCheckResult]:
    """Judge a closed walk by itself."""
    close = events[-1].facts
    broken: str | None = None
    try:
        check_chain(events)
    except TamperedError as error:
        broken = str(error)
    finished = close["traversal"] == "finished"
    return [
        _result(
            "walk_finished",
            passed=finished,
            told=f"{close['traversal']}: {close['stop_reason']}",
            metadata={} if finished else {"findings": table(close["findings"])},
            warn=close["traversal"] != "failed",
        ),
        _result("chain_intact", passed=broken is None, told=broken or f"{len(events)} events link"),
        _result(
            "ledger_conforms",
            passed=not faults,
            told=f"{len(events)} rows" if not faults else f"{len(faults)} checks refuse rows",
            metadata={"faults": table(each.__dict__ for each in faults)} if faults else {},
        ),
    ]


def records_checks(found: Extracted, *, allowed: int) -> list[dg.AssetCheckResult]:
    """Judge the staged records; `allowed` is how many may fail the schema."""
    return [
        _result(
            "keys_readable",
            passed=found.without_key == 0,
            told=f"{found.without_key} of {found.records} records have no readable key",
        ),
        _result(
            "records_conform",
            passed=found.nonconforming <= allowed,
            told=f"{found.nonconforming} records do not conform; {allowed} are accepted",
        ),
    ]


def reconciliation_checks(figures: Reconciliation) -> list[dg.AssetCheckResult]:
    """Judge the figures of a generation."""
    doubled = [
        each
        for each in figures.findings
        if each.code in ("duplicate_delivery", "conflicting_versions")
    ]
    missed = [each for each in figures.expectations if each.result == "missed"]
    # A first night has nothing to swing from; that leaves nothing open.
    left = [each for each in figures.expectations if each.result == "not_evaluated"]
    unproven = [each for each in left if each.name != "swing"]
    met = len(figures.expectations) - len(missed) - len(left)
    return [
        _result(
            "keys_unique",
            passed=not doubled,
            told=f"{figures.unique_keys} unique keys, {figures.duplicate_ids} repeats, "
            f"{figures.conflicting_ids} conflicts",
            metadata={"findings": table(each.as_json() for each in doubled)} if doubled else {},
        ),
        _result(
            "expectations_met",
            passed=not missed and not unproven,
            told=f"{met} met, {len(missed)} missed, {len(left)} not evaluated",
            metadata={"expectations": expectations_table(figures.expectations)},
            warn=not missed,
        ),
    ]


def receipt_check(stored: StoredReceipt) -> dg.AssetCheckResult:
    """Return the verdict that blocks: whether the contract accepts what the receipt says."""
    receipt = stored.receipt
    return _result(
        BLOCKING,
        passed=receipt.accepted,
        told=receipt.statement if receipt.accepted else refusal(receipt),
        metadata={
            **receipt_facts(receipt, stored.receipt_id),
            # Dagster plots numbers of a check over its partitions, which are the nights.
            "unique_ids": receipt.unique_ids_observed,
            "pages": receipt.pages_observed,
            "refused_responses": receipt.refused_responses,
            "findings": receipt.findings.total,
        },
    )


def checks_table(receipt: Receipt) -> list[dict[str, Any]]:
    """Return every check of a generation with its result, as its receipt tells them."""
    codes = {each.code for each in receipt.findings.first}
    extraction, allowed = receipt.extraction, receipt.accept.nonconforming
    judged: dict[CheckName, tuple[bool, str]] = {
        "walk_finished": (
            receipt.traversal == "finished",
            f"{receipt.traversal}: {last_stop_reason(receipt)}",
        ),
        "chain_intact": (
            not codes & {"chain_broken", "evidence_altered"},
            f"{receipt.pages_observed} pages, {receipt.refused_responses} refused answers link",
        ),
        "keys_readable": (
            extraction.without_key == 0,
            f"{extraction.without_key} of {extraction.admitted} records have no readable key",
        ),
        "records_conform": (
            extraction.nonconforming <= allowed,
            f"{extraction.nonconforming} records do not conform; {allowed} are accepted",
        ),
        "keys_unique": (
            not codes & {"duplicate_delivery", "conflicting_versions"},
            (
                f"{receipt.unique_ids_observed} unique keys, {receipt.duplicate_ids} repeats, "
                f"{receipt.conflicting_ids} conflicts"
            ),
        ),
        "expectations_met": (
            all(
                each.result == "met" or (each.name, each.result) == ("swing", "not_evaluated")
                for each in receipt.expectations
            ),
            _outcomes(receipt),
        ),
        BLOCKING: (receipt.accepted, f"{receipt.coverage_status}, {receipt.conclusion_scope}"),
    }
    return [
        {"stage": stage, "check": name, "result": "passed" if passed else "failed", "told": told}
        for stage, name in ALL_CHECKS
        if name in judged
        for passed, told in (judged[name],)
    ]


def _outcomes(receipt: Receipt) -> str:
    results = [each.result for each in receipt.expectations]
    met, missed, left = (results.count(each) for each in ("met", "missed", "not_evaluated"))
    return f"{met} met, {missed} missed, {left} not evaluated"


def refusal(receipt: Receipt) -> str:
    """Say what was found, what was expected, and the first reasons."""
    expected = f"expected {receipt.accept.status}, {receipt.accept.scope}"
    found = f"found {receipt.coverage_status}, {receipt.conclusion_scope}"
    return "; ".join([found, expected, *receipt.reasons[:3]])


def _result(
    name: CheckName,
    *,
    passed: bool,
    told: str,
    metadata: Mapping[str, Any] | None = None,
    warn: bool = False,
) -> dg.AssetCheckResult:
    severity = dg.AssetCheckSeverity.WARN if warn and not passed else dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(
        check_name=name,
        passed=passed,
        description=told,
        severity=severity,
        metadata={**(metadata or {})},
    )


ALL_CHECKS: Final[tuple[tuple[Stage, CheckName], ...]] = tuple(
    (stage, name) for stage in STAGES for name in DESCRIPTIONS[stage]
)
"""Every check by the stage it is on."""
