"""Second question: is it complete, and how do we know?"""

from collections.abc import Iterator, Sequence
from typing import Any

from scan_pipeline.core.checkpoint import Round
from scan_pipeline.core.receipt import Receipt, ReceiptExpectation
from scan_pipeline.core.second_walk import SecondWalk, why_not_equal
from scan_pipeline.stages.reporting import meanings
from scan_pipeline.stages.reporting.bars import expected_against_observed
from scan_pipeline.stages.reporting.document import (
    Block,
    Cell,
    Fact,
    Facts,
    Note,
    Phrase,
    Row,
    Section,
    Table,
    Told,
    Weight,
)
from scan_pipeline.stages.reporting.material import Material, Unread
from scan_pipeline.stages.reporting.wording import (
    DASH,
    WEIGHTS,
    columns,
    digest,
    fact,
    listed,
    missing,
    moment,
    number,
    size,
    told,
    version_of,
    visible,
    words,
    yes_or_no,
)


def completeness_section(material: Material) -> Section:
    """Say how far the walk came and what says that this is all."""
    receipt = material.receipt
    return Section(
        anchor="complete",
        question="Is it complete, and how do we know?",
        answer=(meanings.STATUS if receipt.round is None else meanings.ROUND_STATUS)[
            receipt.coverage_status
        ],
        weight=WEIGHTS[receipt.coverage_status],
        blocks=tuple(_blocks(material)),
    )


def _blocks(material: Material) -> Iterator[Block]:
    receipt = material.receipt
    yield Facts(facts=tuple(_verdict(receipt)))
    yield from _denominators(receipt)
    figure = expected_against_observed(material)
    if figure is not None:
        yield figure
    elif isinstance(material.partitions, Unread):
        yield Note(text=Phrase(parts=("Partitions: ", Told(text=visible(material.partitions.why)))))
    yield Facts(facts=tuple(_walk(material)))
    if receipt.second_walk is not None:
        yield Facts(facts=tuple(_second(receipt.second_walk, receipt)))
    if receipt.assumptions:
        yield Table(
            caption="What has to be believed, because no walk can show it",
            columns=columns("assumption", "why it is believed"),
            rows=tuple(
                Row(
                    cells=(
                        meanings.ASSUMPTION.get(each.name) or told(words(each.name)),
                        meanings.BASIS[each.basis],
                    ),
                    weight="poor" if each.basis == "assumed" else "plain",
                )
                for each in receipt.assumptions
            ),
            wordy=True,
        )


def _verdict(receipt: Receipt) -> Iterator[Fact]:
    least = receipt.accept
    yield fact("Status", receipt.coverage_status, weight=WEIGHTS[receipt.coverage_status])
    yield fact(
        "Speaks of",
        f"{words(receipt.conclusion_scope)}: {meanings.SCOPE[receipt.conclusion_scope]}",
    )
    yield fact(
        "Accepted",
        yes_or_no(receipt.accepted),
        f"the contract asks for at least {least.status}, {words(least.scope)}, and at most "
        f"{least.nonconforming:,} records that do not conform",
        weight="good" if receipt.accepted else "bad",
    )
    if receipt.withheld:
        yield fact(
            "Withheld until a person acknowledges it",
            *(words(each) for each in receipt.withheld),
            weight="poor",
        )
    if receipt.acknowledgement is not None:
        word = receipt.acknowledgement
        yield fact(
            "Rests on the word of",
            told(word.by),
            told(word.because),
            f"that {word.observed:,} records after {word.expected:,} are right for "
            f"{word.generation}",
            f"said at {moment(word.said_at)}, signed as",
            digest(word.acknowledgement_id),
            weight="fair",
        )
    if receipt.reasons:
        yield fact("Why it says no more", *map(told, receipt.reasons), weight="poor")


def _denominators(receipt: Receipt) -> Iterator[Block]:
    if not receipt.expectations:
        yield Note(
            text="Nothing but the walk itself says how many records there are: no count, no ids "
            "in sequence, no list of keys was declared.",
            weight="poor",
        )
        return
    yield Table(
        caption="What says how many there are, against the unique keys that arrived",
        columns=columns("expectation", "#expected", "#observed", "result"),
        rows=tuple(
            Row(
                cells=(
                    meanings.EXPECTATION.get(each.name) or told(words(each.name)),
                    _figure(each.expected),
                    _figure(each.observed),
                    words(each.result),
                ),
                weight=_of_result(each),
            )
            for each in receipt.expectations
        ),
    )


def _figure(value: str | int | None) -> Cell:
    return number(value) if value is None or isinstance(value, int) else told(value)


def _of_result(each: ReceiptExpectation) -> Weight:
    weights: dict[str, Weight] = {"met": "good", "missed": "bad", "not_evaluated": "poor"}
    return weights[each.result]


def _walk(material: Material) -> Iterator[Fact]:
    receipt, end = material.receipt, material.receipt.terminal_evidence
    stopped = words(receipt.stop_reason)
    yield fact(
        "Walk",
        f"{receipt.traversal}: {stopped}",
        weight="good" if receipt.traversal == "finished" else "bad",
    )
    yield fact(
        "End signal",
        "none was seen"
        if end is None
        else f"“{words(end.signal)}” on page {end.page:,}, as the scan declares the end",
        None if receipt.terminal_cursor_observed == (end is not None) else "the receipt disagrees",
        weight="poor" if end is None else "good",
    )
    yield fact(
        "Pages",
        f"{receipt.pages_observed:,}"
        + (f", of at most {receipt.pages_expected_max:,}" if receipt.pages_expected_max else "")
        + (f"; {receipt.empty_pages:,} of them empty" if receipt.empty_pages else ""),
    )
    source = words(receipt.records_expected_source or "")
    yield fact(
        "Records",
        f"{receipt.records_observed:,} delivered, {receipt.unique_ids_observed:,} unique keys",
        "no number to compare with"
        if receipt.records_expected is None
        else f"{receipt.records_expected:,} expected, by {source}",
    )
    yield fact(
        "Delivered twice",
        number(receipt.duplicate_ids),
        weight="poor" if receipt.duplicate_ids else "plain",
    )
    yield fact(
        "In two versions",
        number(receipt.conflicting_ids),
        weight="bad" if receipt.conflicting_ids else "plain",
    )
    yield fact(
        "Known to be missing",
        told(missing(receipt)),
        weight="bad" if receipt.missing_id_ranges else "plain",
    )
    yield from _held(material)


def _held(material: Material) -> Iterator[Fact]:
    receipt = material.receipt
    basis = receipt.consistency_basis
    meaning = meanings.CONSISTENCY[receipt.consistency]
    yield fact(
        "Consistency",
        f"{words(receipt.consistency)}: "
        + (meaning if receipt.round is None else meanings.ROUND_CONSISTENCY),
        None if basis is None else f"believed because {meanings.BASIS[basis]}",
    )
    for name, value in (
        ("Version asked for", receipt.snapshot_id),
        ("Change token before", receipt.change_token),
        ("High-water mark", receipt.high_water_mark),
    ):
        if value is not None:
            yield fact(name, told(value))
    if receipt.round is not None:
        yield from _round(receipt.round)
    if receipt.consistency == "snapshot":
        yield _recheck(material)
    elif version_of(receipt) is None and receipt.consistency == "live":
        yield fact("Pin recheck", "none: there is no version to read again")


def _round(held: Round) -> Iterator[Fact]:
    """Say where a round of changes began and where the next one will."""
    since = held.since
    if since is None:
        yield fact("Round began", "with nothing: a baseline, which asks for everything")
    else:
        yield fact(
            "Round began",
            f"where the pages of {since.generation} ended, which this receipt accepted:",
            digest(since.receipt_id),
            "at the checkpoint",
            digest(since.checkpoint),
        )
    yield fact("Next round begins", digest(held.checkpoint) if held.checkpoint else "nowhere yet")
    yield fact("Removed", f"{held.removed_ids:,} keys, by their last word")


def _recheck(material: Material) -> Fact:
    """Say what reading pages again under the pin came to."""
    if isinstance(material.ledger, Unread):
        return fact(
            "Pin recheck", "the ledger cannot be read; the findings name a recheck that failed"
        )
    close = material.ledger.walks[0][-1]
    checked: Sequence[dict[str, Any]] = close.facts["recheck"] if close.event == "close" else ()
    if not checked:
        return fact("Pin recheck", "not done: no page was read again", weight="poor")
    pages = ", ".join(f"{each['page']:,}" for each in checked)
    equal = all(each["equal"] for each in checked)
    return fact(
        "Pin recheck",
        f"page{'s' if len(checked) > 1 else ''} {pages} read again under the same version: "
        + ("the same records" if equal else "OTHER records"),
        weight="good" if equal else "bad",
    )


def _second(second: SecondWalk, receipt: Receipt) -> Iterator[Fact]:
    why = why_not_equal(second, root=receipt.merkle.root)
    figures = second.figures
    yield fact(
        "Second walk",
        "equal to the first, key by key and record by record"
        if why is None
        else f"not equal: {why}",
        weight="good" if why is None else "poor",
    )
    if figures is not None:
        yield fact("Differences", figures.differences())
        yield fact(
            "Its keys",
            f"{figures.unique_ids_observed:,} unique, {figures.leaves:,} leaves in "
            f"{figures.partitions:,} partitions",
        )
        yield fact("Its root", digest(figures.root))
    yield fact(
        "How it went",
        f"{second.traversal}: {words(second.stop_reason)}, end signal "
        f"{'none' if second.end_signal is None else words(second.end_signal)}",
        f"{second.pages_observed:,} pages, {second.records_observed:,} records, "
        f"{size(second.bytes_observed)}; {second.attempts:,} sends, "
        f"{second.refused_responses:,} refused answers; limits hit: {listed(second.limits_hit)}",
        f"{moment(second.observation_started_at)} to "
        f"{DASH if second.last_page_at is None else moment(second.last_page_at)}",
    )
    yield fact("Its chain", digest(second.cursor_chain_digest))
