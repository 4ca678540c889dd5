"""Last question: what does it not cover?"""

from collections.abc import Iterator, Sequence
from typing import Any

from scan_pipeline.core.receipt import Receipt, ReceiptFinding
from scan_pipeline.stages.reporting import meanings
from scan_pipeline.stages.reporting.document import (
    Block,
    Command,
    Fact,
    Facts,
    Phrase,
    Row,
    Section,
    Table,
    Told,
    Weight,
)
from scan_pipeline.stages.reporting.material import Ledger, Material
from scan_pipeline.stages.reporting.wording import (
    LONGEST,
    brief,
    columns,
    fact,
    listed,
    number,
    told,
    visible,
    words,
)

SHOWN_CASES = 3
"""Findings of one kind that are shown; `findings` shows all of them."""

SHOWN_RANGES = 20
"""Ranges of missing keys that are shown; the receipt has more of them."""


def limits_section(material: Material) -> Section:
    """Say what may not be concluded, what was found, and what to do about it."""
    receipt = material.receipt
    return Section(
        anchor="not_covered",
        question="What does it not cover?",
        answer=Phrase(
            parts=(
                f"It speaks of {meanings.SCOPE[receipt.conclusion_scope]}, and only as ",
                Told(text=visible(receipt.authorized_scope)),
                f" sees them. {_findings_in_words(receipt)}",
            )
        ),
        weight="plain",
        blocks=tuple(_blocks(material)),
    )


def _findings_in_words(receipt: Receipt) -> str:
    total = receipt.findings.total
    if not total:
        return "Nothing was found on the way."
    return f"{total:,} finding{'s were' if total > 1 else ' was'} made on the way."


def _blocks(material: Material) -> Iterator[Block]:
    receipt = material.receipt
    yield Facts(facts=tuple(_facts(material)))
    if receipt.findings.first:
        kinds = dict[tuple[str, ...], list[ReceiptFinding]]()
        for each in receipt.findings.first:
            kind = (each.severity, each.code, each.cause, each.remedy)
            kinds.setdefault(kind, []).append(each)
        yield Table(
            caption=f"Findings by kind, the weightiest first; the receipt carries "
            f"{len(receipt.findings.first):,} of {receipt.findings.total:,}",
            columns=columns("severity", "finding", "#carried", "cases", "cause", "what to do"),
            rows=tuple(_row(each) for each in kinds.values()),
            wordy=True,
        )


def _row(alike: Sequence[ReceiptFinding]) -> Row:
    """Return the row of findings that differ in where, expected and found alone."""
    weights: dict[str, Weight] = {"error": "bad", "warning": "poor", "note": "plain"}
    first = alike[0]
    return Row(
        cells=(
            first.severity,
            told(words(first.code)),
            number(len(alike)),
            _cases(alike),
            told(first.cause),
            told(first.remedy.replace("`", "")),
        ),
        weight=weights[first.severity],
    )


def _cases(alike: Sequence[ReceiptFinding]) -> Phrase:
    parts = list[str | Told]()
    for each in alike[:SHOWN_CASES]:
        parts += ["; "] * bool(parts)
        parts += _case(each)
    if len(alike) > SHOWN_CASES:
        parts.append(f"; and {len(alike) - SHOWN_CASES:,} more")
    return Phrase(parts=tuple(parts))


def _case(each: ReceiptFinding) -> Iterator[str | Told]:
    page = "" if each.page is None else f"page {each.page:,}"
    if each.key is None:
        yield page or "the whole"
    else:
        yield f"{page}, key " if page else "key "
        yield _told_text(each.key)
    for name, value in (("expected", each.expected), ("found", each.found)):
        if value is not None:
            yield f", {name} "
            yield _told_text(value)


def _told_text(value: str) -> Told:
    text = visible(value)
    return Told(text=text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _facts(material: Material) -> Iterator[Fact]:
    receipt = material.receipt
    yield fact(
        "Limits hit",
        listed(receipt.limits_hit) if receipt.limits_hit else "none",
        weight="poor" if receipt.limits_hit else "plain",
    )
    if (redacted := receipt.redacted_paths) is not None:
        yield fact(
            "Taken out before storing",
            told(f"dropped: {', '.join(redacted.dropped) or 'nothing'}"),
            told(f"masked: {', '.join(redacted.masked) or 'nothing'}"),
        )
    if material.taken_out:
        yield fact("Taken out since", *map(told, material.taken_out), weight="poor")
    if isinstance(material.ledger, Ledger):
        yield fact("Limits it worked within", *_limits(material.ledger.contract["contract"]))
    ranges = receipt.missing_id_ranges
    if ranges:
        more = len(ranges) - SHOWN_RANGES
        yield fact(
            "Missing keys",
            told(", ".join(ranges[:SHOWN_RANGES])),
            f"and {more:,} more ranges" if more > 0 else None,
            weight="bad",
        )
    left = [each.name for each in receipt.expectations if each.result == "not_evaluated"]
    yield fact(
        "Expected and not evaluated",
        *(meanings.EXPECTATION.get(each) or told(words(each)) for each in left),
        *(() if left else ("none",)),
        weight="poor" if left else "plain",
    )
    taken = receipt.extraction
    yield fact(
        "Collected and not conforming",
        f"{taken.nonconforming:,} of {taken.admitted:,} records"
        + ("; they count all the same" if taken.nonconforming else ""),
        weight="poor" if taken.nonconforming else "plain",
    )
    yield fact(
        "Without a readable key",
        number(taken.without_key),
        weight="bad" if taken.without_key else "plain",
    )
    opens = receipt.release_policy.opens_to
    yield fact(
        "Opens to",
        *(meanings.READERS.get(each) or told(words(each)) for each in opens),
        *(() if opens else ("nobody",)),
        Phrase(parts=("by the ", Told(text=visible(receipt.release_policy.policy)))),
    )
    if receipt.findings.total:
        yield fact(
            "All findings",
            Command(text=f"scan-pipeline findings {receipt.scan} {receipt.scan_generation}"),
            Phrase(parts=("their digest is ", Told(text=visible(receipt.findings.digest)))),
        )
    else:
        yield fact("Digest of no findings", brief(receipt.findings.digest))


def _limits(contract: dict[str, Any]) -> Iterator[str]:
    for name, value in contract["limits"].items():
        if value is None:
            continue
        if name == "over_count":
            yield f"{value:.0%} above what the source's count implies"
        else:
            yield f"{value:,g} {words(name)}"
