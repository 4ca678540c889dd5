"""First question: which source, and which part of it as visible to whom?"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scan_pipeline.core.receipt import Identity, Receipt
from scan_pipeline.stages.reporting import meanings
from scan_pipeline.stages.reporting.document import (
    Block,
    Fact,
    Facts,
    Note,
    Phrase,
    Section,
    Told,
)
from scan_pipeline.stages.reporting.material import Ledger, Material
from scan_pipeline.stages.reporting.wording import (
    brief,
    fact,
    flat,
    plain,
    told,
    version_of,
    visible,
    words,
)

_HOW_NOT_WHAT: Final = frozenset({"auth", "network", "page_size", "protocol", "provider"})
"""Members of a source that say how it is asked and not what; how one signs in is told nowhere."""

_HEADERS: Final = "headers"
"""Their values may be anything, so that only their names are told."""


def source_section(material: Material) -> Section:
    """Say what was asked of whom."""
    receipt = material.receipt
    return Section(
        anchor="source",
        question="Which source, and which part of it, as visible to whom?",
        answer=Phrase(
            parts=(
                f"{meanings.MODE[receipt.mode].capitalize()}, as ",
                Told(text=visible(receipt.authorized_scope)),
                " sees it: other principals may see more, fewer or other records.",
            )
        ),
        weight="plain",
        blocks=tuple(_blocks(material)),
    )


def _blocks(material: Material) -> Iterator[Block]:
    receipt = material.receipt
    yield Facts(facts=tuple(_facts(receipt)))
    if isinstance(material.ledger, Ledger):
        yield Note(text="What else the scan declares of its source, as the open event has it:")
        yield Facts(facts=tuple(_declared(material.ledger.contract, receipt.query)))


def _facts(receipt: Receipt) -> Iterator[Fact]:
    yield fact("Scan", receipt.scan)
    yield fact("Asked with", told(receipt.tool))
    for at, value in flat(receipt.query):
        if told(value) != told(receipt.tool.rpartition(" ")[2]):
            yield fact(f"Query: {visible(at)}", told(value))
    filters = [at for at, _ in flat(receipt.query) if at != "url"]
    if not filters:
        yield fact("Filters and projection", "none was sent: everything the principal may see")
    before, after = receipt.identity.before, receipt.identity.after
    if before == after:
        yield fact("Who the source says we are", _who(before), "the same before and after")
    else:
        yield fact(
            "Who the source says we are",
            Phrase(parts=("before: ", *_parts(before))),
            Phrase(parts=("after: ", *_parts(after))),
            weight="poor",
        )
    yield fact("A record is named by", told(", ".join(receipt.merkle.key_fields) or None))
    yield fact("Partitioned by", told(receipt.merkle.partition_by or "the hash of the key"))
    yield fact(
        "Version of it",
        "none is named; it is read live"
        if version_of(receipt) is None
        else told(version_of(receipt)),
    )
    yield fact("Scope digest", brief(receipt.scope_digest), "equal digests: comparable generations")
    yield fact("Query digest", brief(receipt.query_digest))


def _who(identity: Identity) -> Phrase:
    return Phrase(parts=_parts(identity))


def _parts(identity: Identity | None) -> tuple[str | Told, ...]:
    if identity is None:
        return ("not asked",)
    if identity.principal is None:
        return ("the source names nobody",)
    name = Told(text=visible(identity.principal))
    if identity.tenant is None:
        return (name,)
    return (name, " of tenant ", Told(text=visible(identity.tenant)))


def _declared(contract: Mapping[str, Any], query: Mapping[str, Any]) -> Iterator[Fact]:
    for name, value in contract["source"].items():
        if name in _HOW_NOT_WHAT or name in query or value is None:
            continue
        if name == _HEADERS:
            if value:
                yield fact("Headers sent", told(sorted(value)))
            continue
        said = [
            f"{at.lstrip('.')}: {_path_or_value(at, inner)}" if at else _path_or_value(name, inner)
            for at, inner in flat(value)
        ]
        if said:
            yield fact(words(name).capitalize(), told("; ".join(said)))


def _path_or_value(at: str, value: Any) -> str:
    """Return a declared value as a scan file has it; a path into a body is written with dots."""
    last = at.rpartition(".")[2]
    if isinstance(value, list | tuple) and (last == "at" or last.endswith("_at")):
        paths = value if any(isinstance(each, list | tuple) for each in value) else [value]
        return ", ".join(".".join(map(str, each)) for each in paths)
    return plain(value)
