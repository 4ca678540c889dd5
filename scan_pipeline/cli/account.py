"""A receipt as a reviewer reads it: what is said, how far it was got, what it rests on."""

from collections.abc import Iterator

from scan_pipeline.cli.output import answer, print_facts, print_table
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.value import record

SHOWN_FINDINGS = 10
"""Findings shown with a receipt; `findings` shows all of them."""


@record
class Filed:
    """A receipt with its id and the place where it is filed.

    Attributes:
        receipt: the account itself.
        receipt_id: `sha256:<hex>` of the signed payload.
        path: where it lies.
        takes: what a night and a year of it take, in words.
        taken_out: what was dropped or erased of its rows since, in words.
    """

    receipt: Receipt
    receipt_id: str
    path: str
    takes: tuple[tuple[str, str], ...] = ()
    taken_out: tuple[str, ...] = ()


def print_account(filed: Filed) -> None:
    """Give the whole account: statement, verdict, figures, what it rests on, findings, place."""
    receipt = filed.receipt
    answer(receipt.statement)
    answer()
    since = [("since then", each) for each in filed.taken_out]
    print_facts([*_verdict(receipt), *since, *_figures(receipt)])
    if receipt.expectations:
        print_table(
            ("expectation", "expected", "observed", "result"),
            [(e.name, e.expected, e.observed, words(e.result)) for e in receipt.expectations],
        )
    if receipt.assumptions:
        print_table(
            ("must be believed", "because"),
            [(words(each.name), words(each.basis)) for each in receipt.assumptions],
        )
    _print_findings(receipt)
    print_facts(_place(filed))


def words(word: str) -> str:
    """Return a closed word as people write it."""
    return word.replace("_", " ")


def _verdict(receipt: Receipt) -> Iterator[tuple[str, object]]:
    least = receipt.accept
    yield "accepted", receipt.accepted
    yield "coverage", receipt.coverage_status
    yield "scope", words(receipt.conclusion_scope)
    yield (
        "expected",
        f"at least {least.status}, {words(least.scope)}, {least.nonconforming:,} not conforming",
    )
    for reason in receipt.reasons:
        yield "because", reason


def _figures(receipt: Receipt) -> Iterator[tuple[str, object]]:
    end = receipt.terminal_evidence
    stopped = f"{end.signal} on page {end.page:,}" if end else words(receipt.stop_reason)
    yield "walk", f"{receipt.traversal}: {stopped}"
    if receipt.limits_hit:
        yield "limits hit", ", ".join(receipt.limits_hit)
    most = receipt.pages_expected_max
    yield "pages", f"{receipt.pages_observed:,}" + (f" of at most {most:,}" if most else "")
    expected, source = receipt.records_expected, receipt.records_expected_source or ""
    said = (
        f" of {expected:,} ({words(source)})" if expected is not None else ", no count to compare"
    )
    yield "records", f"{receipt.records_observed:,}{said}"
    yield "unique keys", receipt.unique_ids_observed
    yield "duplicates", receipt.duplicate_ids
    yield "conflicts", receipt.conflicting_ids
    yield "missing", _missing(receipt)
    yield "not conforming", receipt.extraction.nonconforming
    yield "without a key", receipt.extraction.without_key
    yield "refused answers", receipt.refused_responses
    if (redacted := receipt.redacted_paths) is not None:
        yield "dropped before storing", ", ".join(redacted.dropped) or None
        yield "masked before storing", ", ".join(redacted.masked) or None
    if receipt.round is None:
        yield "held still by", _held(receipt)
    else:
        since = receipt.round.since
        yield "round", "a baseline" if since is None else f"changes since {since.generation}"
        yield "removals", receipt.round.removed_ids
    yield "root", receipt.merkle.root


def _missing(receipt: Receipt) -> str:
    if receipt.missing_id_ranges:
        return ", ".join(receipt.missing_id_ranges)
    looked = [e for e in receipt.expectations if e.name in ("id_sequence", "manifest")]
    if not looked:
        return "not looked for by name (no id sequence or manifest is declared)"
    evaluated = any(each.result != "not_evaluated" for each in looked)
    return "none" if evaluated else "not evaluated"


def _held(receipt: Receipt) -> str:
    version = receipt.snapshot_id or receipt.change_token or receipt.high_water_mark
    return receipt.consistency if version is None else f"{receipt.consistency} {version}"


def _print_findings(receipt: Receipt) -> None:
    told = receipt.findings.first[:SHOWN_FINDINGS]
    if not told:
        answer("no findings")
        return
    title = f"findings: {len(told):,} of {receipt.findings.total:,}"
    print_table(
        ("severity", "code", "page", "expected", "found", "what to do"),
        [(f.severity, f.code, f.page, f.expected, f.found, f.remedy) for f in told],
        title=title,
    )


def _place(filed: Filed) -> Iterator[tuple[str, object]]:
    receipt = filed.receipt
    if receipt.restart_of:
        yield "restart of", receipt.restart_of
    if receipt.redacts:
        yield "redacts", receipt.redacts
    if receipt.supersedes:
        yield "supersedes", receipt.supersedes
    yield "opens to", ", ".join(map(words, receipt.release_policy.opens_to)) or "nobody"
    yield from filed.takes
    yield "receipt", filed.receipt_id
    yield "filed at", filed.path
