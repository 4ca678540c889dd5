"""Fourth stage: the receipt, for every outcome."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.contract import accept_level
from scan_pipeline.core.contract_digests import ContractDigests
from scan_pipeline.core.coverage import Judgement, accepted, is_acknowledged, judge
from scan_pipeline.core.findings import FIRST_FINDINGS, Finding, findings_digest, most_telling
from scan_pipeline.core.receipt import (
    MERKLE_DEFINITION,
    AcceptLevel,
    AdapterRevision,
    Extraction,
    FindingsDigest,
    Identity,
    IdentityEvidence,
    MerkleEvidence,
    PinnedFileEvidence,
    PinnedTableEvidence,
    ProviderRevision,
    Receipt,
    ReceiptAcknowledgement,
    ReceiptAssumption,
    ReceiptExpectation,
    ReceiptFinding,
    ReleasePolicy,
    TerminalEvidence,
)
from scan_pipeline.core.reconciliation import Reconciliation
from scan_pipeline.core.redacted_paths import RedactedPaths
from scan_pipeline.core.scan import Scan, source_json
from scan_pipeline.core.vocabulary import WHOLE_COLLECTION, Basis
from scan_pipeline.core.walk import pages_implied
from scan_pipeline.core.walk_evidence import WalkEvidence
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.store.events import Event
from scan_pipeline.store.pinning import PinnedTable

Pinned = Mapping[str, tuple[str, str, PinnedTable]]
"""By name of the table: its path below the lake, the generation that holds the rows, the pin."""


def make_receipt(
    scan: Scan,
    *,
    generation: str,
    events: Sequence[Event],
    walk: WalkEvidence,
    figures: Reconciliation,
    findings: Sequence[Finding],
    digests: ContractDigests,
    pinned: Pinned,
    clock: Callable[[], datetime],
    supersedes: str | None = None,
    acknowledgement: ReceiptAcknowledgement | None = None,
) -> Receipt:
    """Write down what was covered.

    Args:
        scan: the scan.
        generation: generation the receipt is of.
        events: its events in order.
        walk: the events summed up.
        figures: the reconciliation.
        findings: findings of the records stage.
        digests: digests of the contract's blocks.
        pinned: the tables of this generation, by content.
        clock: time in UTC.
        supersedes: id of the receipt of the same evidence that this one replaces.
        acknowledgement: whose word a swing is believed on; None where nobody gave it.
    """
    acknowledgement = acknowledgement if is_acknowledged(figures, acknowledgement) else None
    judgement = judge(scan, walk, figures, staged=findings, acknowledgement=acknowledgement)
    told = (*walk.findings, *findings, *figures.findings, *judgement.findings)
    pages = [event for event in events if event.event == "page"]
    opened = events[0].facts
    is_accepted = accepted(scan, judgement, nonconforming=figures.nonconforming)
    status, scope = accept_level(scan.contract)
    expected, expected_source = _records_expected(walk, figures)
    authorized = _authorized_scope(walk)
    return Receipt(
        receipt_version=1,
        scan=scan.name,
        scan_generation=generation,
        run_id=f"{scan.name}/{generation}",
        restart_of=opened["restart_of"],
        supersedes=supersedes,
        mode=scan.contract.mode,
        tool=scan.source.tool,
        query=_query(scan),
        query_digest=f"sha256:{digest_of(_query(scan)).hex()}",
        scope_digest=digests.scope,
        judgement_digest=digests.judgement,
        operation_digest=digests.operation,
        adapter=AdapterRevision(**opened["adapter"]),
        provider=provider_of(scan),
        authorized_scope=authorized,
        identity=IdentityEvidence(
            before=Identity(principal=walk.before.principal, tenant=walk.before.tenant),
            after=None
            if walk.after is None
            else Identity(principal=walk.after.principal, tenant=walk.after.tenant),
        ),
        consistency=scan.contract.consistency,
        consistency_basis=_basis(scan),
        snapshot_id=walk.pin.version,
        change_token=walk.before.change_token,
        high_water_mark=walk.before.high_water_mark,
        observation_started_at=moment(events[0].received_at),
        last_page_at=moment(pages[-1].received_at) if pages else None,
        completed_at=moment(clock()),
        pages_expected_max=_pages_expected_max(scan, walk, pages),
        pages_observed=len(pages),
        records_expected=expected,
        records_expected_source=expected_source,
        records_observed=figures.records,
        unique_ids_observed=figures.unique_keys,
        duplicate_ids=figures.duplicate_ids,
        conflicting_ids=figures.conflicting_ids,
        missing_id_ranges=figures.missing_id_ranges[:FIRST_FINDINGS],
        bytes_observed=sum(event.body_bytes or 0 for event in pages),
        attempts=sum(event.attempts or 0 for event in pages),
        refused_responses=sum(1 for event in events if event.event == "refused"),
        empty_pages=sum(1 for event in pages if not event.returned),
        extraction=Extraction(
            admitted=figures.records,
            nonconforming=figures.nonconforming,
            without_key=figures.without_key,
        ),
        cursor_chain_digest=f"sha256:{events[-1].chain.hex()}",
        terminal_cursor_observed=walk.end_signal is not None,
        terminal_evidence=None
        if walk.end_signal is None
        else TerminalEvidence(signal=walk.end_signal, page=len(pages)),
        traversal=walk.traversal,
        stop_reason=walk.stop_reason,
        limits_hit=walk.limits_hit,
        assumptions=tuple(
            ReceiptAssumption(name=each.name, basis=each.basis) for each in judgement.assumptions
        ),
        expectations=tuple(
            ReceiptExpectation(
                name=each.name, expected=each.expected, observed=each.observed, result=each.result
            )
            for each in figures.expectations
        ),
        coverage_status=judgement.status,
        conclusion_scope=judgement.scope,
        reasons=judgement.reasons,
        accept=AcceptLevel(
            status=status, scope=scope, nonconforming=scan.contract.accept.nonconforming
        ),
        accepted=is_accepted,
        findings=FindingsDigest(
            total=len(told),
            digest=findings_digest(told),
            first=tuple(ReceiptFinding(**each.as_json()) for each in most_telling(told)),
        ),
        merkle=MerkleEvidence(
            definition=MERKLE_DEFINITION,
            leaf_encoding=scan.source.stored_encoding,
            leaves=figures.leaves,
            partitions=figures.partitions,
            root=figures.root,
            key_fields=scan.contract.key,
            partition_by=scan.contract.partition_by,
        ),
        evidence={name: _evidence(table, held, pin) for name, (table, held, pin) in pinned.items()},
        release_policy=_release_policy(judgement, accepted=is_accepted),
        statement=_statement(
            scan, generation, walk, judgement, figures, acknowledgement=acknowledgement
        ),
        second_walk=walk.second,
        redacted_paths=RedactedPaths.of(scan.source.redact),
        withheld=judgement.withheld,
        acknowledgement=acknowledgement,
        round=walk.round and replace(walk.round, removed_ids=figures.removed_ids),
    )


def all_findings(
    scan: Scan, walk: WalkEvidence, staged: Sequence[Finding], figures: Reconciliation
) -> tuple[Finding, ...]:
    """Return every finding of a generation in the order in which the receipt digests them."""
    judgement = judge(scan, walk, figures, staged=staged)
    return (*walk.findings, *staged, *figures.findings, *judgement.findings)


def provider_of(scan: Scan) -> ProviderRevision | None:
    """Return whose documented facts a scan's source was filled in with."""
    provider = scan.source.provider
    if provider is None:
        return None
    return ProviderRevision(name=provider.name, revision=provider.revision)


def _query(scan: Scan) -> dict[str, Any]:
    facts = source_json(scan.source)
    return {name: facts[name] for name in scan.source.QUERY if name in facts}


def _basis(scan: Scan) -> Basis | None:
    source = scan.source
    if scan.contract.consistency == "snapshot" and source.snapshot is not None:
        return source.snapshot.basis
    if scan.contract.consistency == "high_water_mark" and source.high_water_mark is not None:
        return source.high_water_mark.basis
    if scan.contract.consistency == "change_token":
        return source.change_token_basis
    return None


def _pages_expected_max(scan: Scan, walk: WalkEvidence, pages: Sequence[Event]) -> int | None:
    limits = scan.contract.limits
    largest = max((event.returned or 0 for event in pages), default=0)
    implied = None if walk.total is None else pages_implied(walk.total, page_size=largest)
    if implied is not None and limits.over_count is not None:
        implied = int(implied * (1 + limits.over_count))
    bounds = [bound for bound in (implied, limits.pages) if bound is not None]
    return min(bounds) if bounds else None


def _records_expected(walk: WalkEvidence, figures: Reconciliation) -> tuple[int | None, str | None]:
    if walk.total is not None:
        return walk.total, "source_count"
    for each in figures.expectations:
        if each.name in ("count", "partition_counts", "manifest") and isinstance(
            each.expected, int
        ):
            return each.expected, each.name
    return None, None


def _authorized_scope(walk: WalkEvidence) -> str:
    principal, tenant = walk.before.principal, walk.before.tenant
    if principal is None:
        return "the credentials of the scan (the source names no principal)"
    return principal if tenant is None else f"{principal} of tenant {tenant}"


def _evidence(table: str, generation: str, pin: PinnedTable) -> PinnedTableEvidence:
    return PinnedTableEvidence(
        table=table,
        generation=generation,
        version=pin.version,
        rows=pin.rows,
        files_digest=pin.files_digest,
        files=tuple(
            PinnedFileEvidence(path=each.path, size=each.size, sha256=each.sha256)
            for each in pin.files
        ),
    )


def _release_policy(judgement: Judgement, *, accepted: bool) -> ReleasePolicy:
    whole = judgement.status in ("verified", "corroborated") and judgement.scope in WHOLE_COLLECTION
    if whole and accepted:
        opens = ("verified_assets", "partial_assets", "published")
    elif accepted:
        opens = ("partial_assets", "published")
    elif judgement.status == "failed":
        opens = ()
    else:
        opens = ("partial_assets",)
    return ReleasePolicy(opens_to=opens, policy="accept level of the scan contract")


def _statement(
    scan: Scan,
    generation: str,
    walk: WalkEvidence,
    judgement: Judgement,
    figures: Reconciliation,
    *,
    acknowledgement: ReceiptAcknowledgement | None,
) -> str:
    """Write the one plain sentence a reader may quote."""
    found = f"{figures.unique_keys:,} records of {scan.name}, generation {generation}"
    if walk.round is not None:
        found = (
            f"{figures.unique_keys:,} {'records' if walk.round.since is None else 'changes'} of "
            f"{scan.name}, {figures.removed_ids:,} of them removals, generation {generation}"
        )
    if scan.contract.mode == "trial":
        found = f"A trial: {found}"
    match judgement.status, judgement.scope:
        case "verified", "all_changes_since_checkpoint" if walk.round and walk.round.since:
            said = f"{found}, are all since {walk.round.since.generation}, verified"
        case "verified", "all_changes_since_checkpoint":
            said = f"{found}, are all there were and what changed while they were read, verified"
        case "verified", _:
            said = f"{found}, are {judgement.scope.replace('_', ' ')}, verified"
        case "corroborated", _:
            said = f"{found}, were equal in two whole walks"
        case "unknown", _ if judgement.withheld:
            said = f"{found}, are withheld: their number moved further than expected"
        case "unknown", "records_encountered_in_live_traversal":
            said = f"{found}, were met by a walk to the end; others may exist"
        case "unknown", "bounded_view":
            said = f"{found}, are a bounded view; others may exist"
        case "unknown", _ if scan.contract.mode == "trial":
            said = f"{found}, are what a few pages hold; more exist or may exist"
        case "unknown", _:
            said = f"{found}, are what was read before the walk stopped; more exist or may exist"
        case _:
            said = f"{found}, prove nothing about the whole: the evidence disagrees"
    if figures.nonconforming:
        said += f", {figures.nonconforming:,} of them not conforming to the schema"
    swing = next((each for each in figures.expectations if each.name == "swing"), None)
    if acknowledgement is not None and swing is not None and swing.result == "missed":
        said += f"; {acknowledgement.by} acknowledged the change from {swing.expected:,} records"
    return f"{said}, as visible to {_authorized_scope(walk)}."
