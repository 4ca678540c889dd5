"""The generation that counted as done before another one, for expectations that compare with it."""

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.shelf import Shelf, pages_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import generation_order


def last_accepted_records(scan: Scan, *, evidence: str, workspace: Workspace) -> int | None:
    """Return the number of records of the last accepted generation of this scope before another.

    Args:
        scan: the scan.
        evidence: generation whose pages the one that is compared rests on.
        workspace: where.
    """
    if scan.contract.expect.swing is None:
        return None
    scope = scope_digest(scan)
    own = generation_order(evidence)
    for stored in Shelf(scan.name, workspace=workspace).standing():
        receipt = stored.receipt
        # A restage is held against the night before it: by the pages, not by the names.
        earlier = generation_order(pages_of(receipt)) < own
        if earlier and receipt.accepted and receipt.scope_digest == scope:
            return receipt.unique_ids_observed
    return None
