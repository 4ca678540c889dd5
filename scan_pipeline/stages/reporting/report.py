"""Makes the report: receipt, ledger and neighbours as a document in the order of a review."""

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.reporting.attempt_section import attempt_section
from scan_pipeline.stages.reporting.completeness_section import completeness_section
from scan_pipeline.stages.reporting.document import Cell, Fact, Phrase, Report, Told
from scan_pipeline.stages.reporting.integrity_section import integrity_section
from scan_pipeline.stages.reporting.limits_section import limits_section
from scan_pipeline.stages.reporting.material import Material
from scan_pipeline.stages.reporting.source_section import source_section
from scan_pipeline.stages.reporting.wording import (
    WEIGHTS,
    fact,
    moment,
    number,
    told,
    visible,
    words,
)


def make_report(material: Material) -> Report:
    """Return the account of one generation; pure, and the same for every writer."""
    receipt = material.receipt
    accepted = "accepted" if receipt.accepted else "not accepted"
    return Report(
        title=f"{receipt.scan}, generation {receipt.scan_generation}",
        scan=receipt.scan,
        generation=receipt.scan_generation,
        verdict=f"{receipt.coverage_status}, {accepted}",
        weight=WEIGHTS[receipt.coverage_status],
        statement=_statement(receipt),
        glance=(*_glance(receipt), *_since(material)),
        sections=(
            source_section(material),
            completeness_section(material),
            integrity_section(material),
            attempt_section(material),
            limits_section(material),
        ),
        foot=(
            f"Made at {moment(material.made_at)} from the signed receipt "
            f"(version {receipt.receipt_version}) and what the lake still held. The receipt is the "
            "evidence; this page only tells it."
        ),
    )


def _statement(receipt: Receipt) -> Cell:
    """Return the receipt's sentence, in which the principal is a text from outside."""
    said, seen, rest = receipt.statement.rpartition(receipt.authorized_scope)
    if not seen:
        return Told(text=visible(receipt.statement))
    return Phrase(parts=(visible(said), Told(text=visible(seen)), visible(rest)))


def _since(material: Material) -> tuple[Fact, ...]:
    """Say what was taken out after the receipt was signed, whose figures are of before."""
    taken_out = material.taken_out
    return (fact("Taken out since", *map(told, taken_out), weight="poor"),) if taken_out else ()


def _glance(receipt: Receipt) -> tuple[Fact, ...]:
    expected = receipt.records_expected
    return (
        fact("Unique keys", number(receipt.unique_ids_observed)),
        fact("Expected", "nobody says" if expected is None else number(expected)),
        fact("Pages", number(receipt.pages_observed)),
        fact("Walk", receipt.traversal),
        fact("Held still by", words(receipt.consistency)),
        fact("Observed", moment(receipt.observation_started_at)),
    )
