"""The report as data: a reviewer's questions in order, every figure of the receipt, both plots."""

import shutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.reporting.document import Facts, Figure, Report, Section
from scan_pipeline.stages.reporting.gather import gather
from scan_pipeline.stages.reporting.packet import markdown, to_markdown
from scan_pipeline.stages.reporting.report import make_report

QUESTIONS = ("source", "complete", "intact", "attempt", "not_covered")

LEFT_OUT = {
    "evidence.pages.files.path": "the digest of the files stands for them",
    "evidence.pages.files.sha256": "the digest of the files stands for them",
}
"""What a report does not show, and why; the receipt itself has it."""


def section(report: Report, anchor: str) -> Section:
    return next(each for each in report.sections if each.anchor == anchor)


def told(report: Report, anchor: str, name: str) -> str:
    """Return a fact of a section as text."""
    found = [
        each
        for block in section(report, anchor).blocks
        if isinstance(block, Facts)
        for each in block.facts
        if each.name == name
    ]
    return "; ".join(markdown(value) for each in found for value in each.values)


def figures(report: Report) -> dict[str, Figure]:
    return {
        block.name: block
        for each in report.sections
        for block in each.blocks
        if isinstance(block, Figure)
    }


@pytest.mark.parametrize("kind", ["verified", "corroborated", "live", "failed"])
def test_questions_stand_in_the_order_of_a_review_and_each_is_answered(material, kind) -> None:
    report = make_report(material(kind))

    assert tuple(each.anchor for each in report.sections) == QUESTIONS
    assert all(markdown(each.answer).strip() and each.blocks for each in report.sections)
    assert report.weight == {
        "verified": "good", "corroborated": "fair", "live": "poor", "failed": "bad"
    }[kind]  # fmt: skip


def test_verified_night_says_what_it_rests_on(material) -> None:
    report = make_report(material("verified"))

    assert report.verdict == "verified, accepted"
    assert section(report, "complete").answer.startswith("Yes.")
    assert "read again under the same version: the same records" in told(
        report, "complete", "Pin recheck"
    )
    assert "page 3" in told(report, "complete", "End signal")
    assert "linked again for this report" in told(report, "intact", "Chain of events")
    assert "give this root" in told(report, "intact", "Root of the records")
    assert told(report, "intact", "Audit") == "not run for this report"
    assert "1 pages took more than one send; 7." in told(report, "attempt", "Retries and waits")


def test_audit_that_was_run_is_told_with_its_level(material) -> None:
    report = make_report(material("verified", audited=True))

    assert "as deep as bodies" in told(report, "intact", "Audit")
    assert section(report, "intact").weight == "good"


def test_two_walks_are_told_with_their_differences(material) -> None:
    report = make_report(material("corroborated"))

    assert told(report, "complete", "Second walk").startswith("equal to the first")
    assert told(report, "complete", "Differences").startswith("0 keys only in the first walk")
    assert len(figures(report)["pages_over_time"].plot.lines) == 2


def test_live_night_says_that_nothing_held_it_still(material) -> None:
    report = make_report(material("live"))

    assert section(report, "complete").answer.startswith("Not proven.")
    assert told(report, "source", "Version of it") == "none is named; it is read live"
    assert "params.view" in to_markdown(report)


def test_failed_night_names_what_is_missing_and_what_to_do(material) -> None:
    report = make_report(material("failed"))

    assert "customer-101..customer-200" in told(report, "not_covered", "Missing keys")
    assert told(report, "not_covered", "Opens to").startswith("nobody")
    text = to_markdown(report)
    for finding in material("failed").receipt.findings.first:
        assert finding.code.replace("_", " ") in text
        assert finding.remedy.replace("`", "").split("_")[0] in text


def test_partitions_that_disagree_are_drawn_against_what_was_expected(material) -> None:
    bars = figures(make_report(material("failed")))["expected_against_observed"].plot.bars

    assert sum(each.expected for each in bars) == 300
    assert sum(each.value for each in bars) == 200
    assert {each.weight for each in bars if each.value != each.expected} == {"bad"}


def test_waits_and_refused_answers_are_drawn_and_tabled(material) -> None:
    figure = figures(make_report(material("verified")))["pages_over_time"]

    assert [round(each.ends - each.begins) for each in figure.plot.waits] == [7]
    assert len(figure.plot.refused) == 1
    cells = [[str(cell) for cell in row.cells] for row in figure.table.rows]
    assert sum(int(row[1]) for row in cells) == 3
    assert sum(int(row[2]) for row in cells) == 300
    assert sum(int(row[3]) for row in cells) == sum(int(row[4]) for row in cells) == 1
    assert sum(float(row[5].removesuffix(" s")) for row in cells) == pytest.approx(7, abs=0.2)


def test_neighbouring_generations_stand_beside_this_one(nights) -> None:
    first = nights["live"]
    second = first.again()
    gathered = gather(second.night.stored, workspace=second.workspace, audited=False)

    bars = figures(make_report(gathered))["records_by_night"].plot.bars

    assert [(each.label, each.value, each.strong) for each in bars] == [
        (first.generation, 300, False),
        (second.generation, 300, True),
    ]


def test_altered_ledger_is_told_and_is_no_evidence(material) -> None:
    whole = material("verified")
    altered = replace(whole.ledger, walks=(whole.ledger.walks[0][:-2],))

    report = make_report(replace(whole, ledger=altered))

    assert section(report, "intact").weight == "bad"
    assert "DISAGREES" in told(report, "intact", "Chain of events")


def test_altered_partitions_are_told(material) -> None:
    whole = material("verified")

    report = make_report(replace(whole, partitions=whole.partitions[1:]))

    assert "the partitions" in markdown(section(report, "intact").answer)
    assert "DISAGREES" in told(report, "intact", "Root of the records")


def test_report_is_made_although_the_tables_are_gone(bench) -> None:
    night = bench.walk(bench.registry(size=120))
    lake = Path(night.workspace.project.lake)
    shutil.rmtree(lake / "evidence")
    shutil.rmtree(lake / "staging")

    gathered = gather(night.night.stored, workspace=night.workspace, audited=False)
    report = make_report(gathered)

    assert "not followed again" in told(report, "intact", "Chain of events")
    assert section(report, "intact").weight == "poor"
    assert "120" in to_markdown(report)


def test_every_member_of_the_receipt_is_told_or_left_out_on_purpose(fullest, with_receipt) -> None:
    """Another value anywhere in the receipt is another report."""
    before = to_markdown(make_report(fullest))
    silent = set[str]()
    for at, receipt in changed_receipts(fullest.receipt):
        if to_markdown(make_report(with_receipt(fullest, receipt))) == before:
            silent.add(at)

    assert silent == set(LEFT_OUT)


def changed_receipts(receipt: Receipt) -> Iterator[tuple[str, Receipt]]:
    """Yield the receipt with one member changed, for each of them."""
    yield from _changed(receipt, Receipt, "")


def _changed(value: Any, hint: Any, at: str) -> Iterator[tuple[str, Any]]:
    if is_dataclass(value):
        hints = get_type_hints(type(value))
        for each in fields(value):
            inner, path = getattr(value, each.name), f"{at}.{each.name}".lstrip(".")
            for changed_at, other in _changed(inner, hints[each.name], path):
                yield changed_at, replace(value, **{each.name: other})
    elif isinstance(value, dict):
        names = ["pages"] if at == "evidence" else list(value)
        for name in names:
            for changed_at, other in _changed(value[name], None, f"{at}.{name}"):
                yield changed_at, {**value, name: other}
    elif isinstance(value, tuple) and value and is_dataclass(value[0]):
        for changed_at, other in _changed(value[0], None, at):
            yield changed_at, (other, *value[1:])
    else:
        yield at, _another(value, hint)


def _another(value: Any, hint: Any) -> Any:
    words = [each for each in _words(hint) if each != value]
    if words:
        return words[-1]
    match value:
        case bool():
            return not value
        case int():
            return value * 3 + 7  # a size is told to two or three figures
        case tuple():
            return (*value, "another")
        case None:
            return "another"
        case str() if value.startswith("sha256:"):
            return f"sha256:{'0' * 64}"
        case _:
            return _another_text(value)


def _another_text(value: str) -> str:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return f"another {value}"
    return (at + timedelta(days=400)).isoformat()


def _words(hint: Any) -> Iterator[Any]:
    """Yield the closed words that a type allows."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    elif get_origin(hint) in (UnionType, Union):
        for each in get_args(hint):
            yield from _words(each)
