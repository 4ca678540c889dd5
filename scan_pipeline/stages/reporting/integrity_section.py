"""Third question: is it intact, and how can a reader check that?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.merkle import PartitionRoot, collection_root
from scan_pipeline.core.receipt import PinnedTableEvidence, Receipt
from scan_pipeline.stages.auditing.report import AuditCheck, AuditReport
from scan_pipeline.stages.reconciling.evidence import check_chain
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
from scan_pipeline.stages.reporting.material import Ledger, Material, Unread
from scan_pipeline.stages.reporting.wording import (
    brief,
    columns,
    digest,
    fact,
    number,
    size,
    told,
    visible,
    words,
)
from scan_pipeline.store.events import Event

_LEDGER_GONE: Final = (
    "The signature holds. The events of the walk cannot be read any more, so the chain was not "
    "followed again."
)

_NOT_AUDITED: Final = (
    "The signature holds, and the events of the walk still link up to the digest that was signed. "
    "Records and page bodies were not read again for this report."
)


def integrity_section(material: Material) -> Section:
    """Say what was checked when the report was made, and what a reader can check."""
    wrong = tuple(_wrong(material))
    answer, weight = _answer(material, wrong)
    return Section(
        anchor="intact",
        question="Is it intact?",
        answer=answer,
        weight=weight,
        blocks=tuple(_blocks(material)),
    )


def chain_problem(ledger: Ledger, receipt: Receipt) -> str | None:
    """Say where the ledger's chain is not the one that was signed, None where it is."""
    signed = [receipt.cursor_chain_digest]
    if receipt.second_walk is not None:
        signed.append(receipt.second_walk.cursor_chain_digest)
    if len(signed) != len(ledger.walks):
        return f"found {len(ledger.walks)} walks; the receipt tells of {len(signed)}"
    for events, expected in zip(ledger.walks, signed, strict=True):
        if (problem := _linked(events, expected)) is not None:
            return problem
    return None


def _linked(events: Sequence[Event], expected: str) -> str | None:
    try:
        found = f"sha256:{check_chain(events).hex()}"
    except TamperedError as error:
        return str(error)
    return None if found == expected else f"the chain ends at {found}; the receipt says {expected}"


def partitions_give_root(rows: Sequence[Mapping[str, Any]], receipt: Receipt) -> bool:
    """Say whether the stored partitions give the signed root; integers are stored as digits."""
    return any(_folded(rows, numbers=numbers) == receipt.merkle.root for numbers in (False, True))


def _folded(rows: Sequence[Mapping[str, Any]], *, numbers: bool) -> str | None:
    try:
        return collection_root(
            PartitionRoot(
                value=int(row["partition"])
                if numbers and row["partition"] is not None
                else row["partition"],
                leaf_count=int(row["leaf_count"]),
                root=bytes.fromhex(row["root"]),
            )
            for row in rows
            if row["root"] is not None
        ).hex()
    except ValueError:  # not digits, or no root in hex
        return None


def _wrong(material: Material) -> Iterator[str]:
    receipt, rows = material.receipt, material.partitions
    if isinstance(material.ledger, Ledger) and chain_problem(material.ledger, receipt):
        yield "the chain of events"
    read = not isinstance(rows, Unread)
    if read and receipt.merkle.root is not None and not partitions_give_root(rows, receipt):
        yield "the partitions"
    if material.audit is not None:
        yield from (each.name for each in material.audit.disagreements)


def _answer(material: Material, wrong: Sequence[str]) -> tuple[str | Phrase, Weight]:
    if wrong:
        return (
            Phrase(
                parts=(
                    "No. The signature holds, but what lies in the lake is not what was signed: ",
                    Told(text=visible(", ".join(wrong[:8]))),
                    ". What is shown from it below is no evidence.",
                )
            ),
            "bad",
        )
    if isinstance(material.ledger, Unread):
        return _LEDGER_GONE, "poor"
    audit = material.audit
    if audit is None:
        return _NOT_AUDITED, "fair"
    return (
        f"Yes. Every figure was computed again, as deep as {audit.level}: "
        f"{len(audit.checks):,} checks, none of which disagrees"
        + (
            f", {len(audit.not_computed):,} of which could not be made."
            if audit.not_computed
            else "."
        ),
        "fair" if audit.not_computed else "good",
    )


def _blocks(material: Material) -> Iterator[Block]:
    receipt = material.receipt
    yield Facts(facts=tuple(_facts(material)))
    if material.audit is not None and (rows := tuple(_audit_rows(material.audit))):
        yield Table(
            caption="What the audit could not agree with",
            columns=columns("check", "outcome", "receipt says", "found"),
            rows=rows,
            wordy=True,
        )
    yield Table(
        caption="Rows that the receipt pins by content",
        columns=columns("table", "#rows", "#files", "#size", "digest of the files"),
        rows=tuple(
            Row(
                cells=(
                    told(_table(name, held, receipt)),
                    number(held.rows),
                    number(len(held.files)),
                    size(sum(each.size for each in held.files)),
                    brief(held.files_digest),
                )
            )
            for name, held in receipt.evidence.items()
        ),
        wordy=True,
    )
    yield Facts(facts=tuple(_how_to_check(material)))


def _table(name: str, held: PinnedTableEvidence, receipt: Receipt) -> str:
    """Return a pinned table's place, and what of it is not as its name and receipt imply."""
    said = [held.table]
    said += [f"as {name}"] * (not held.table.endswith(f"/{name}"))
    of_another = held.generation != receipt.scan_generation
    said += [f"of generation {held.generation}"] * of_another
    return f"{', '.join(said)} (version {held.version:,})"


def _facts(material: Material) -> Iterator[Fact]:
    receipt = material.receipt
    yield fact("Receipt id", digest(material.stored.receipt_id))
    yield fact("Signed by the key", digest(material.fingerprint), "which the trust file lists")
    yield fact("Chain of events", digest(receipt.cursor_chain_digest), *_chain_checked(material))
    tree = receipt.merkle
    yield fact(
        "Root of the records",
        "none: a conflict or a record without key forbids one"
        if tree.root is None
        else digest(tree.root),
        f"{tree.leaves:,} leaves in {tree.partitions:,} partitions; {tree.definition}, "
        f"{tree.leaf_encoding}",
        *_root_checked(material),
    )
    yield fact("Judgement digest", brief(receipt.judgement_digest))
    yield fact("Operation digest", brief(receipt.operation_digest))
    audit = material.audit
    yield fact(
        "Audit",
        "not run for this report"
        if audit is None
        else f"as deep as {audit.level}; {len(audit.checks):,} checks, "
        f"{len(audit.disagreements):,} disagree, {len(audit.not_computed):,} could not be made",
        weight="plain" if audit is None else "good" if audit.agrees else "bad",
    )


def _chain_checked(material: Material) -> Iterator[str | Phrase]:
    if isinstance(material.ledger, Unread):
        yield Phrase(parts=("not followed again: ", Told(text=visible(material.ledger.why))))
    elif problem := chain_problem(material.ledger, material.receipt):
        yield Phrase(parts=("DISAGREES: ", Told(text=visible(problem))))
    else:
        events = sum(len(each) for each in material.ledger.walks)
        yield f"{events:,} stored events linked again for this report: they end there"


def _root_checked(material: Material) -> Iterator[str | Phrase]:
    rows = material.partitions
    if material.receipt.merkle.root is None:
        return
    if isinstance(rows, Unread):
        yield Phrase(parts=("not folded again: ", Told(text=visible(rows.why))))
    elif partitions_give_root(rows, material.receipt):
        yield "the stored partitions give this root"
    else:
        yield "DISAGREES: the stored partitions give another root"


def _audit_rows(audit: AuditReport) -> Iterator[Row]:
    for each in (*audit.disagreements, *audit.not_computed):
        yield Row(
            cells=(told(words(each.name)), _outcome(each), told(each.expected), told(each.found)),
            weight="bad" if each.agrees is False else "poor",
        )


def _outcome(each: AuditCheck) -> str:
    return "disagrees" if each.agrees is False else "not computed"


def _how_to_check(material: Material) -> Iterator[Fact]:
    receipt = material.receipt
    of = f"{receipt.scan} {receipt.scan_generation}"
    yield fact(
        "Check it yourself",
        Command(text=f"scan-pipeline audit {of}"),
        "computes every figure again from the lake",
        Command(text=f"scan-pipeline receipt {of} --raw"),
        "the signed DSSE envelope: the SHA-256 of its decoded payload is the receipt id, and its "
        "one Ed25519 signature must be by the key above",
    )
