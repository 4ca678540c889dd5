"""The generation that counted as done before another one, for expectations that compare with it."""

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.shelf import Shelf, pages_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import generation_order


def last_accepted_records(
    scan: Scan, generation: str, *, evidence: str, workspace: Workspace
) -> int | None:
    """Return the number of records of the last accepted generation of this scope before it.

    Args:
        scan: the scan.
        generation: the generation that is compared.
        evidence: generation whose pages it rests on.
        workspace: where.
    """
    if scan.contract.expect.swing is None:
        return None
    scope = scope_digest(scan)
    own = generation_order(generation)
    for stored in Shelf(scan.name, workspace=workspace).standing():
        receipt = stored.receipt
        earlier = generation_order(receipt.scan_generation) < own
        # A restage is held against the night before it, not against its own pages.
        earlier = earlier and pages_of(receipt) != evidence
        if earlier and receipt.accepted and receipt.scope_digest == scope:
            return receipt.unique_ids_observed
    return None
