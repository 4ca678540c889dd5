"""The other two plots: expected against observed by partition, and records night by night."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.core.receipt import Receipt, ReceiptExpectation
from scan_pipeline.stages.reporting.document import Bar, Bars, Figure, Row, Table, Weight
from scan_pipeline.stages.reporting.material import Ledger, Material, Night, Unread
from scan_pipeline.stages.reporting.wording import (
    DASH,
    WEIGHTS,
    columns,
    number,
    told,
    visible,
    words,
)

SHOWN: Final = 24
"""Partitions of one plot, at most: those that disagree, then the largest."""

LABEL: Final = 22
"""Characters of a label; the table beside has more of them."""

_Counts = tuple[str | None, int | None, int]
"""A partition (None: records without a value), what was expected of it, what came."""


def expected_against_observed(material: Material) -> Figure | None:
    """Return records by partition, else by expectation; None where nothing can be compared."""
    receipt, rows = material.receipt, material.partitions
    if receipt.merkle.partition_by is None or isinstance(rows, Unread) or not rows:
        return _by_expectation(receipt)
    expected = _expected(material.ledger)
    found = {each["partition"]: int(each["unique_keys"]) for each in rows}
    names = sorted({*found, *expected}, key=lambda each: (each is None, each or ""))
    counts = [
        (name, expected.get(name, 0) if expected else None, found.get(name, 0)) for name in names
    ]
    return _by_partition(receipt, counts)


def records_by_night(nights: Sequence[Night], receipt: Receipt) -> Figure | None:
    """Return unique keys of the generations around this one; None where it stands alone."""
    if len(nights) < 2:
        return None
    bars, rows = list[Bar](), list[Row]()
    for each in nights:
        own = each.generation == receipt.scan_generation
        if isinstance(each.receipt, Unread):
            bars.append(Bar(label=each.generation, value=None, expected=None, said="no receipt"))
            rows.append(Row(cells=(each.generation, DASH, told(each.receipt.why), DASH)))
            continue
        that = each.receipt
        weight = WEIGHTS[that.coverage_status]
        bars.append(
            Bar(
                label=each.generation,
                value=that.unique_ids_observed,
                expected=None,
                said=f"{that.unique_ids_observed:,} {that.coverage_status}",
                weight=weight,
                strong=own,
            )
        )
        rows.append(
            Row(
                cells=(
                    _named(each.generation, that, receipt),
                    number(that.unique_ids_observed),
                    that.coverage_status,
                    "yes" if that.accepted else "no",
                ),
                weight=weight,
            )
        )
    return Figure(
        name="records_by_night",
        caption="Records of the generations around this one",
        alternative=f"{len(bars)} generations; their figures stand in the table.",
        legend="The bar with an outline is this generation; colours follow the status beside it.",
        plot=Bars(unit="unique keys", bars=tuple(bars)),
        table=Table(
            caption="The same as figures; only generations of the same scope compare",
            columns=columns("generation", "#records", "status", "accepted"),
            rows=tuple(rows),
        ),
    )


def _named(generation: str, that: Receipt, own: Receipt) -> str:
    """Return a generation's name with what a reader must know before comparing it."""
    if that.scan_generation == own.scan_generation:
        return f"{generation} (this one)"
    same = that.scope_digest == own.scope_digest
    return generation if same else f"{generation} (another scope)"


def _expected(ledger: Ledger | Unread) -> Mapping[str | None, int]:
    """Return what was expected of each partition; nothing where nobody said."""
    if isinstance(ledger, Unread):
        return {}
    declared = ledger.contract["contract"]["expect"]["partition_counts"]
    if declared != "source":
        return dict(declared or {})
    close = ledger.walks[0][-1]
    after: Mapping[str, Any] = (close.event == "close" and close.facts["after"]) or {}
    return dict(after.get("partition_counts") or {})


def _by_partition(receipt: Receipt, counts: Sequence[_Counts]) -> Figure:
    known = any(expected is not None for _, expected, _ in counts)
    apart = [each for each in counts if each[1] is not None and each[1] != each[2]]
    shown = _most_telling(counts)
    rest = len(counts) - len(shown)
    by = receipt.merkle.partition_by or ""
    agreed = (
        "nothing says how many each should hold"
        if not known
        else "each holds as many as expected"
        if not apart
        else f"{len(apart):,} do not hold as many as expected"
    )
    others = f"; {rest:,} others are not shown" if rest else ""
    return Figure(
        name="expected_against_observed",
        caption=f"Unique keys by {visible(by)}, expected and observed",
        alternative=f"{len(counts):,} partitions: {agreed}{others}.",
        legend="Bar: observed. Upright line: expected." if known else "Bar: observed.",
        plot=Bars(
            unit="unique keys",
            bars=tuple(
                Bar(
                    label=_label(name),
                    value=found,
                    expected=expected,
                    said=_said(expected, found),
                    weight=_weight(expected, found),
                )
                for name, expected, found in shown
            ),
        ),
        table=Table(
            caption=f"The same as figures{others}",
            columns=columns("partition", "#expected", "#observed", "#difference"),
            rows=tuple(
                Row(
                    cells=(
                        "no value" if name is None else told(name),
                        number(expected),
                        number(found),
                        DASH if expected is None else f"{found - expected:+,}".replace("+0", "0"),
                    ),
                    weight=_weight(expected, found),
                )
                for name, expected, found in shown
            ),
        ),
    )


def _most_telling(counts: Sequence[_Counts]) -> Sequence[_Counts]:
    if len(counts) <= SHOWN:
        return counts
    by_weight = sorted(
        counts,
        key=lambda each: (each[1] is None or each[1] == each[2], -max(each[1] or 0, each[2])),
    )
    return by_weight[:SHOWN]


def _by_expectation(receipt: Receipt) -> Figure | None:
    numbers = [
        (each, each.expected, each.observed)
        for each in receipt.expectations
        if isinstance(each.expected, int)
        and isinstance(each.observed, int)
        and each.name != "every_record"
    ]
    if not numbers:
        return None
    return Figure(
        name="expected_against_observed",
        caption="Expected and observed, by what says how many there are",
        alternative="; ".join(
            f"{words(each.name)}: {observed:,} of {expected:,}"
            for each, expected, observed in numbers
        )
        + ".",
        legend="Bar: observed. Upright line: expected.",
        plot=Bars(
            unit="keys",
            bars=tuple(
                Bar(
                    label=words(each.name),
                    value=observed,
                    expected=expected,
                    said=_said(expected, observed),
                    weight=_of_result(each),
                )
                for each, expected, observed in numbers
            ),
        ),
        table=Table(
            caption="The same as figures",
            columns=columns("expectation", "#expected", "#observed", "result"),
            rows=tuple(
                Row(
                    cells=(
                        words(each.name),
                        number(expected),
                        number(observed),
                        words(each.result),
                    ),
                    weight=_of_result(each),
                )
                for each, expected, observed in numbers
            ),
        ),
    )


def _of_result(each: ReceiptExpectation) -> Weight:
    weights: dict[str, Weight] = {"met": "good", "missed": "bad", "not_evaluated": "poor"}
    return weights[each.result]


def _weight(expected: int | None, found: int) -> Weight:
    if expected is None:
        return "plain"
    return "good" if expected == found else "bad"


def _said(expected: int | None, found: int) -> str:
    if expected is None or expected == found:
        return f"{found:,}"
    return f"{found:,} of {expected:,}"


def _label(name: str | None) -> str:
    text = "no value" if name is None else visible(name)
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"
