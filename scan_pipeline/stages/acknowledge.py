"""A withheld receipt is acknowledged: recorded, signed, and the same pages judged again with it.

The acknowledgement lies beside the receipts, the withheld receipt stays as it is, and the one that
supersedes it names both. Whether the swing is the only thing in the way is computed again from the
evidence: an acknowledgement that was signed for a receipt makes no failed count of it right.
"""

from scan_pipeline.core.acknowledgement import acknowledgement
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.receipts import StoredReceipt


def acknowledge(
    scan: str, generation: str, *, by: str, because: str, workspace: Workspace
) -> StoredReceipt:
    """Acknowledge the swing for which a generation's receipt is withheld.

    The pages are judged again under the contract that the generation was begun with, and under no
    newer one: an expectation that was edited since is a matter for `restage`.

    Args:
        scan: name of the scan.
        generation: the generation whose receipt is withheld.
        by: who acknowledges it.
        because: why the change is real.
        workspace: where.

    Returns:
        The receipt that supersedes the withheld one.

    Raises:
        GateClosedError: it has no receipt, or one that is superseded already.
        ContractError: nothing is withheld for a swing, or the bodies of its pages are gone.
    """
    receipts, notes = workspace.receipts(scan), workspace.acknowledgements(scan)
    stored = receipts.read(generation, trust=workspace.trust)
    later = Shelf(scan, workspace=workspace).superseded_by(stored)
    if later is not None:
        raise GateClosedError(
            scan=scan,
            generation=generation,
            reason=f"it is superseded by {later.receipt.scan_generation}; expected the receipt "
            "that stands",
        )
    now = workspace.clock()
    said = acknowledgement(
        stored.receipt, stored.receipt_id, by=by, because=because, said_at=moment(now)
    )
    # One that was said and then broke off is carried out as it was said.
    known = [
        each
        for each in notes.of(generation, trust=workspace.trust)
        if each.receipt_id == stored.receipt_id
    ]
    if known:
        said = known[0]
    else:
        signer = signing_signer(workspace.project, now=now, create="never")
        said = notes.write(said, signer=signer)
    contract = contract_of(workspace.store(scan, generation).opened())
    return restage(contract, generation, workspace=workspace, acknowledged=said)
