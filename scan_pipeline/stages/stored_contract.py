"""The contract that a generation was walked under, as its open event tells."""

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.workspace import Workspace


def stored_contract(scan: str, generation: str | None, *, workspace: Workspace) -> Scan:
    """Return the contract of a generation, as it was begun with.

    It says what a reader means who has no scan file at hand. The gate holds it against the receipt:
    a contract that was altered in the lake opens nothing.

    Args:
        scan: name of the scan.
        generation: the generation; None for the newest accepted one, else the newest.
        workspace: where.

    Raises:
        GateClosedError: it has no receipt.
        ContractError: the lake holds nothing of that name.
    """
    if not workspace.receipts(scan).generations():
        raise ContractError(f"the lake at {workspace.project.lake} holds no receipt of {scan}")
    chosen = generation or _newest(scan, workspace=workspace)
    if chosen is None or not workspace.receipts(scan).has(chosen):
        raise GateClosedError(scan=scan, generation=chosen, reason="no receipt; expected one")
    return contract_of(workspace.store(scan, chosen).opened())


def _newest(scan: str, *, workspace: Workspace) -> str | None:
    """Return the newest generation that stands and is accepted, else the newest that stands."""
    standing = [each.receipt for each in Shelf(scan, workspace=workspace).standing()]
    accepted = (each.scan_generation for each in standing if each.accepted)
    return next(accepted, standing[0].scan_generation if standing else None)
