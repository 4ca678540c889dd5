"""Judge stored pages again after a fix of schema, key or expectation, without asking the source."""

from scan_pipeline.core.contract import Scan, scan_json, scope_digest
from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages.enumerate import SHARD
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import EventLog, to_batch
from scan_pipeline.store.generations import next_attempt
from scan_pipeline.store.receipts import StoredReceipt


def restage(scan: Scan, generation: str, *, workspace: Workspace) -> StoredReceipt:
    """Parse, reconcile and judge a sealed generation's pages again, as a new generation.

    The pages stay where they are and are the new generation's evidence too; its receipt names the
    one it supersedes. Nothing of the old generation changes.

    Args:
        scan: the contract as it is now; its scope must be the old one's.
        generation: the sealed generation whose pages are used.
        workspace: where.

    Raises:
        GateClosedError: the generation has no receipt.
        ContractError: the scope of the contract has changed since: only a new walk can answer.
    """
    receipts = workspace.receipts(scan.name)
    old = receipts.read(generation, trust=workspace.trust)
    now = scope_digest(scan)
    if old.receipt.scope_digest != now:
        raise ContractError(
            f"{scan.name} {generation} was walked under scope {old.receipt.scope_digest}; the "
            f"contract's scope is {now} now. Stored pages cannot answer another question: run it"
        )
    evidence = old.receipt.evidence["pages"].generation
    fresh = _free_attempt(scan.name, generation, workspace=workspace)
    pipeline = Pipeline(scan, fresh, workspace=workspace, evidence=evidence)
    _open(pipeline, scan, restages=generation, evidence=evidence, workspace=workspace)
    return judge_again(pipeline, supersedes=old.receipt_id)


def judge_again(pipeline: Pipeline, *, supersedes: str) -> StoredReceipt:
    """Bring a restaged generation to its receipt."""
    pipeline.records()
    pipeline.reconciliation()
    stored = pipeline.receipt(supersedes=supersedes)
    pipeline.published(stored)
    return stored


def _open(
    pipeline: Pipeline, scan: Scan, *, restages: str, evidence: str, workspace: Workspace
) -> None:
    """Commit the new generation's only event: the contract it is judged under, and whose pages."""
    store = workspace.store(scan.name, pipeline.generation)
    first = workspace.store(scan.name, evidence).events()[0]
    opened = EventLog().open(
        {
            "scan": scan.name,
            "generation": pipeline.generation,
            "restart_of": None,
            "restages": restages,
            "evidence": evidence,
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
        shard=SHARD,
        sealer=store.sealer(),
    )
    store.admission(shard=SHARD).commit(rows, expected=None, sealed=store.is_sealed)


def _free_attempt(scan: str, generation: str, *, workspace: Workspace) -> str:
    pages = workspace.store(scan, generation).pages()
    taken = {*pages.generations(), *workspace.receipts(scan).generations()}
    name = next_attempt(generation)
    while name in taken:
        name = next_attempt(name)
    return name
