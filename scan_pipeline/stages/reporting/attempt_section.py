"""Fourth question: who asked, when, with what, and how did it go?"""

from collections.abc import Iterator
from datetime import datetime

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.reporting.bars import records_by_night
from scan_pipeline.stages.reporting.course import course_of, refused_answers, waits
from scan_pipeline.stages.reporting.document import (
    Block,
    Fact,
    Facts,
    Note,
    Phrase,
    Section,
    Told,
)
from scan_pipeline.stages.reporting.material import Ledger, Material, Unread
from scan_pipeline.stages.reporting.wording import (
    fact,
    moment,
    number,
    seconds,
    size,
    told,
    visible,
)


def attempt_section(material: Material) -> Section:
    """Say who walked, when and how it went."""
    receipt = material.receipt
    return Section(
        anchor="attempt",
        question="Who asked, when, and how did it go?",
        answer=Phrase(
            parts=(
                Told(text=visible(receipt.authorized_scope)),
                _in_short(receipt),
            )
        ),
        weight="plain",
        blocks=tuple(_blocks(material)),
    )


def _blocks(material: Material) -> Iterator[Block]:
    yield Facts(facts=tuple(_facts(material)))
    if isinstance(material.ledger, Unread):
        yield Note(
            text=Phrase(
                parts=(
                    "Pages over time are not shown, since the events cannot be read: ",
                    Told(text=visible(material.ledger.why)),
                )
            ),
            weight="poor",
        )
    else:
        if (refused := refused_answers(material.ledger)) is not None:
            yield refused
        if (course := course_of(material.ledger)) is not None:
            yield course
    if (nights := records_by_night(material.nights, material.receipt)) is not None:
        yield nights


def _facts(material: Material) -> Iterator[Fact]:
    receipt, provider = material.receipt, material.receipt.provider
    yield fact("Principal", told(receipt.authorized_scope))
    yield fact("Run", told(receipt.run_id))
    yield (
        fact("Restart of", told(receipt.restart_of))
        if receipt.restart_of
        else fact("Attempt", "the first of its generation")
    )
    if receipt.redacts:
        yield fact("Stands for", told(receipt.redacts), "which named a record that was erased")
    if receipt.supersedes:
        yield fact(
            "Judges again", told(receipt.supersedes), "the same pages under a newer contract"
        )
    if material.superseded_by:
        yield fact(
            "Superseded by",
            told(material.superseded_by),
            "which judged the same pages again",
            weight="poor",
        )
    yield fact("Opened", moment(receipt.observation_started_at))
    yield fact("Last page", moment(receipt.last_page_at))
    yield fact("Sealed", moment(receipt.completed_at))
    yield fact("Adapter", told(f"{receipt.adapter.name}, revision {receipt.adapter.revision}"))
    yield fact(
        "Provider facts",
        "none: the scan file alone describes the source"
        if provider is None
        else told(f"{provider.name}, revision {provider.revision}"),
    )
    yield fact(
        "Requests",
        f"{receipt.attempts:,} sends for {receipt.pages_observed:,} pages, "
        f"{size(receipt.bytes_observed)} of answers",
    )
    yield fact(
        "Refused answers",
        number(receipt.refused_responses),
        weight="poor" if receipt.refused_responses else "plain",
    )
    if isinstance(material.ledger, Ledger):
        waited = waits(material.ledger)
        yield fact(
            "Retries and waits",
            f"{len(waited):,} pages took more than one send; "
            f"{seconds(sum(each.lasted for each in waited))} passed before they were answered"
            if waited
            else "every page was answered at the first send",
        )


def _in_short(receipt: Receipt) -> str:
    return (
        f", from {moment(receipt.observation_started_at)} for {seconds(_lasted(receipt))}: "
        f"{receipt.attempts:,} sends brought {receipt.pages_observed:,} pages; "
        f"{receipt.refused_responses:,} answers were not pages."
    )


def _lasted(receipt: Receipt) -> float:
    began = datetime.fromisoformat(receipt.observation_started_at)
    return (datetime.fromisoformat(receipt.completed_at) - began).total_seconds()
