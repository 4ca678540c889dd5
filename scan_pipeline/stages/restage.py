"""Judge stored pages again after a fix of schema, key or expectation, without asking the source."""

from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.acknowledgement import Acknowledgement
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.receipt import PinnedTableEvidence
from scan_pipeline.core.scan import Scan, scan_json
from scan_pipeline.stages.acknowledged import acknowledged_in
from scan_pipeline.stages.naming import free_attempt
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.walking.contract_check import check_contract
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event, EventLog, to_batch
from scan_pipeline.store.generations import FIRST_WALK
from scan_pipeline.store.held_now import held_now
from scan_pipeline.store.receipts import StoredReceipt


def restage(
    scan: Scan,
    generation: str,
    *,
    workspace: Workspace,
    acknowledged: Acknowledgement | None = None,
) -> StoredReceipt:
    """Parse, reconcile and judge a sealed generation's pages again, as a new generation.

    The pages stay where they are and are the new generation's evidence too; its receipt names the
    one it supersedes. Nothing of the old generation changes.

    Args:
        scan: the contract as it is now; its scope must be the old one's.
        generation: the sealed generation whose pages are used.
        workspace: where.
        acknowledged: a person's word, signed, that the swing is real; None where nobody gave it.

    Raises:
        GateClosedError: the generation has no receipt.
        ContractError: the scope of the contract has changed since, or the bodies of its pages were
            dropped or erased: only a new walk can answer.
    """
    receipts = workspace.receipts(scan.name)
    old = receipts.read(generation, trust=workspace.trust)
    now = scope_digest(scan)
    if old.receipt.scope_digest != now:
        raise ContractError(
            f"{scan.name} {generation} was walked under scope {old.receipt.scope_digest}; the "
            f"contract's scope is {now} now. Stored pages cannot answer another question: run it"
        )
    held = old.receipt.evidence["pages"]
    evidence = held.generation
    _refuse_without_bodies(held, scan.name, workspace=workspace)
    fresh = free_attempt(scan.name, generation, workspace=workspace)
    pipeline = Pipeline(scan, fresh, workspace=workspace, evidence=evidence)
    check_contract(scan, pipeline.schema)
    facts: dict[str, Any] = {"restages": generation, "evidence": evidence}
    # What was said of these pages once holds in every later judgement, for that very change.
    said = old.receipt.acknowledgement if acknowledged is None else acknowledged.reference
    if said is not None:
        facts["acknowledgement"] = {"id": said.acknowledgement_id, "generation": said.generation}
    _open(pipeline, scan, facts=facts, workspace=workspace)
    return judge_again(pipeline, facts, supersedes=old.receipt_id, workspace=workspace)


def is_restage(opened: Event) -> bool:
    """Say whether an open event begins a restage rather than a walk."""
    return "restages" in opened.facts


def finish_restage(
    scan: Scan, generation: str, opened: Event, *, workspace: Workspace
) -> StoredReceipt:
    """Bring a restage that broke off to its receipt.

    Args:
        scan: the contract it was begun with.
        generation: the generation it makes.
        opened: its open event.
        workspace: where.

    Raises:
        GateClosedError: the generation it restages has no receipt.
    """
    restaged = workspace.receipts(scan.name).read(opened.facts["restages"], trust=workspace.trust)
    evidence = opened.facts["evidence"]
    pipeline = Pipeline(scan, generation, workspace=workspace, evidence=evidence)
    return judge_again(pipeline, opened.facts, supersedes=restaged.receipt_id, workspace=workspace)


def judge_again(
    pipeline: Pipeline, facts: Mapping[str, Any], *, supersedes: str, workspace: Workspace
) -> StoredReceipt:
    """Bring a restaged generation to its receipt.

    Args:
        pipeline: its stages.
        facts: of its open event.
        supersedes: id of the receipt that this one replaces.
        workspace: where.

    Raises:
        TamperedError: the event names an acknowledgement that nobody signed.
    """
    acknowledgement = acknowledged_in(facts, pipeline.scan.name, workspace=workspace)
    pipeline.records()
    pipeline.reconciliation()
    stored = pipeline.receipt(supersedes=supersedes, acknowledgement=acknowledgement)
    pipeline.published()
    return stored


def _refuse_without_bodies(held: PinnedTableEvidence, scan: str, *, workspace: Workspace) -> None:
    notes = workspace.amendments(scan).of(held.generation, trust=workspace.trust)
    pages = workspace.store(scan, held.generation).pages()
    if gone := held_now("pages", pages, held, notes).amendments:
        raise ContractError(
            f"{scan} {held.generation}: {gone[-1].word()}; expected the bodies of all its pages, "
            "which are judged again: run the scan"
        )


def _open(
    pipeline: Pipeline, scan: Scan, *, facts: Mapping[str, Any], workspace: Workspace
) -> None:
    """Commit the new generation's only event: the contract it is judged under, and whose pages."""
    store = workspace.store(scan.name, pipeline.generation)
    first = workspace.store(scan.name, facts["evidence"]).events()[0]
    opened = EventLog().open(
        {
            "scan": scan.name,
            "generation": pipeline.generation,
            "restart_of": None,
            **facts,
            "contract": scan_json(scan),
            "schema_fingerprint": pipeline.schema.fingerprint,
            "digests": dict(pipeline.digests.__dict__),
            "adapter": first.facts["adapter"],
            "before": first.facts["before"],
        },
        at=workspace.clock(),
    )
    rows = to_batch(
        [opened],
        scan=scan.name,
        generation=pipeline.generation,
        shard=FIRST_WALK,
        sealer=store.sealer(),
    )
    store.admission(shard=FIRST_WALK).commit(rows, expected=None, sealed=store.is_sealed)
