"""What a receipt says, in words for somebody who has nothing but the bundle it lies in."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus
from scan_pipeline.stages.bundling.manifest import LeftOut

_STATUS: Final[dict[CoverageStatus, str]] = {
    "verified": "Yes. The whole was read, and what the source says of its size agrees.",
    "corroborated": "Two whole walks agreed; no count or version of the source says so.",
    "unknown": "Not shown. Nothing contradicts, but nothing proves that the whole was read.",
    "failed": "No. The evidence disagrees with itself; nothing follows about the whole.",
}

_SCOPE: Final[dict[ConclusionScope, str]] = {
    "all_records_in_snapshot": "all records of one version of the collection",
    "all_records_at_change_token": "all records as of one change token",
    "all_records_up_to_high_water_mark": "all records up to a bound fixed at the start",
    "all_records_present_throughout_both_walks": "all records present throughout two walks",
    "all_changes_since_checkpoint": "all changes since a checkpoint",
    "bounded_view": "no more than the declared bound of the view",
    "records_encountered_in_live_traversal": "what was met while the collection could change",
    "observed_pages_only": "the pages that were read, and nothing beyond them",
}


def report(
    receipt: Receipt,
    *,
    receipt_id: str,
    fingerprint: str,
    superseded_by: str | None,
    left_out: Sequence[LeftOut],
) -> str:
    """Return the report of a bundle, in Markdown.

    Args:
        receipt: the account of the generation.
        receipt_id: its id.
        fingerprint: of the key that signed it.
        superseded_by: the receipt that judged the same pages again.
        left_out: what the bundle does not hold.
    """
    lines = [
        f"# {receipt.scan}, generation {receipt.scan_generation}",
        "",
        f"> {_cell(receipt.statement)}",
        "",
    ]
    if superseded_by is not None:
        lines += [f"**Its pages were judged again: receipt {superseded_by} stands instead.**", ""]
    for heading, body in (
        ("What was asked, and as whom", _asked(receipt)),
        ("Is it complete, and how do we know", _complete(receipt)),
        ("What must be believed", _believed(receipt)),
        ("Is it intact", _intact(receipt, receipt_id, fingerprint)),
        ("What this does not cover", _not_covered(receipt, left_out)),
        ("Findings", _findings(receipt)),
    ):
        lines += [f"## {heading}", "", *body, ""]
    return "\n".join(lines)


def _asked(receipt: Receipt) -> Iterator[str]:
    identity = receipt.identity.before
    provider = "" if receipt.provider is None else f", by the facts of {receipt.provider.name}"
    yield f"- Source: `{receipt.tool}` through {receipt.adapter.name}{provider}."
    yield f"- Scope and filters: {_cell(canonical_json(dict(receipt.query)).decode())}."
    yield f"- Visible to: {_cell(receipt.authorized_scope)}. What it may not see is not here."
    if identity.principal is not None:
        tenant = "" if identity.tenant is None else f" of {_cell(identity.tenant)}"
        after = receipt.identity.after
        same = "the same after it" if after == identity else "not shown to be the same after it"
        yield f"- The source named {_cell(identity.principal)}{tenant} before the walk, and {same}."
    yield f"- Read from {receipt.observation_started_at} to {receipt.last_page_at or 'no page'}."


def _complete(receipt: Receipt) -> Iterator[str]:
    accepted = "" if receipt.accepted else " The scan's own contract does not accept this."
    yield f"**{receipt.coverage_status}**: {_STATUS[receipt.coverage_status]}{accepted}"
    yield ""
    yield f"- It speaks of {_SCOPE[receipt.conclusion_scope]} (`{receipt.conclusion_scope}`)."
    yield from (f"- {_cell(reason)}." for reason in receipt.reasons)
    counted = "no count was given"
    if receipt.records_expected is not None:
        source = receipt.records_expected_source or "the contract"
        counted = f"{receipt.records_expected:,} were expected, as {_plain(source)} says"
    yield (
        f"- {receipt.records_observed:,} records on {receipt.pages_observed:,} pages, "
        f"{receipt.unique_ids_observed:,} distinct; {counted}."
    )
    ended = receipt.terminal_evidence
    end = "the declared end of the collection was never seen"
    if ended is not None:
        end = f"page {ended.page:,} brought the declared end, `{ended.signal}`"
    yield f"- The walk {receipt.traversal} ({_plain(receipt.stop_reason)}); {end}."
    basis = receipt.consistency_basis
    held = f", on the word of: {_plain(basis)}" if basis else ""
    yield f"- Held still by: {_plain(receipt.consistency)}{held}."
    if receipt.missing_id_ranges:
        yield f"- Never came: {', '.join(map(_cell, receipt.missing_id_ranges))}."
    if receipt.expectations:
        yield ""
        yield from _table(
            ("expectation", "expected", "observed", "result"),
            ((e.name, e.expected, e.observed, _plain(e.result)) for e in receipt.expectations),
        )


def _believed(receipt: Receipt) -> Iterator[str]:
    if not receipt.assumptions:
        yield "Nothing beyond the evidence."
    for each in receipt.assumptions:
        yield f"- {_plain(each.name)}: {_plain(each.basis)}"


def _intact(receipt: Receipt, receipt_id: str, fingerprint: str) -> Iterator[str]:
    tree = receipt.merkle
    yield f"- Receipt `{receipt_id}`, signed by key `{fingerprint}`."
    yield f"- Chain over every answer: `{receipt.cursor_chain_digest}`."
    root = "none: two versions of one record conflict" if tree.root is None else f"`{tree.root}`"
    yield f"- Tree over {tree.leaves:,} records in {tree.partitions:,} partitions: {root}."
    yield "- This text proves nothing: `GUIDE.md` says how to check."


def _not_covered(receipt: Receipt, left_out: Sequence[LeftOut]) -> Iterator[str]:
    yield "- Whether a value is true: only that it is what the source sent."
    yield "- What changed after it was read, and what this principal may not see."
    yield "- Bodies of the answers; they stay with whoever made this bundle, sealed."
    for each in left_out:
        yield f"- Not in this bundle: {_plain(each.part)}: {each.why}."
    for each in receipt.expectations:
        if each.result == "not_evaluated":
            yield f"- Not evaluated: {each.name}."
    seen = receipt.extraction
    if seen.nonconforming:
        yield f"- {seen.nonconforming:,} records do not fit their schema; they were collected."
    if seen.without_key:
        yield f"- {seen.without_key:,} records have no key; nothing can be proven of them."
    if receipt.limits_hit:
        yield f"- Cut short by the limit of: {', '.join(map(_plain, receipt.limits_hit))}."


def _findings(receipt: Receipt) -> Iterator[str]:
    told = receipt.findings
    if not told.total:
        yield "None."
        return
    yield f"{len(told.first):,} of {told.total:,}; all of them are in `findings.json`."
    yield ""
    yield from _table(
        ("finding", "weight", "page", "record", "expected", "found", "what to do"),
        (
            (_plain(f.code), f.severity, f.page, f.key, f.expected, f.found, f.remedy)
            for f in told.first
        ),
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(value: object) -> str:
    """Return a value in a table; text of the source must not look like text of the report."""
    if value is None:
        return ""
    plain = "".join(each if each.isprintable() else "?" for each in str(value))
    return plain.translate({ord(each): f"\\{each}" for each in "\\|`*_<>[]"})


def _plain(word: str) -> str:
    return word.replace("_", " ")
