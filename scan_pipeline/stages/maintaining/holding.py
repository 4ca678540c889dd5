"""Holding a generation while a review of it is open, and letting it go: said, signed, kept."""

from typing import Literal

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.hold import Hold
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import signing_signer


def say_hold(
    scan: str,
    generation: str,
    *,
    state: Literal["held", "released"],
    because: str,
    by: str | None,
    workspace: Workspace,
) -> Hold:
    """Write down that a generation is held, or let go.

    Raises:
        ContractError: the scan has no such sealed generation, or no reason is given.
        ConfigurationError: the signing key is missing.
    """
    if not because.strip():
        raise ContractError("found no reason; expected one that a reader in a year understands")
    if not workspace.receipts(scan).has(generation):
        raise ContractError(
            f"{scan} has no receipt of {generation}; expected a sealed generation: an open one is "
            "never dropped"
        )
    at = workspace.clock()
    note = Hold(
        hold_version=1,
        scan=scan,
        scan_generation=generation,
        state=state,
        said_at=moment(at),
        because=because,
        by=by,
    )
    signer = signing_signer(workspace.project, now=at, create="never")
    return workspace.holds(scan).write(note, signer=signer)
