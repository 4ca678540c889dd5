"""Names for generations that do not exist yet."""

from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import new_generation, next_attempt

_TRIED = 100


def free_generation(scan: str, *, workspace: Workspace) -> str:
    """Return the name of a generation that begins now and does not exist yet.

    Raises:
        ContractError: one of this very second exists, and so do all its attempts.
    """
    return _free(scan, new_generation(workspace.clock()), workspace=workspace)


def free_attempt(scan: str, generation: str, *, workspace: Workspace) -> str:
    """Return the name of the next attempt after a generation that does not exist yet.

    Raises:
        ContractError: too many of them exist.
    """
    return _free(scan, next_attempt(generation), workspace=workspace)


def _free(scan: str, name: str, *, workspace: Workspace) -> str:
    receipts = workspace.receipts(scan)
    walked = workspace.store(scan, name).pages().generations()
    taken = {*walked, *receipts.generations(), *receipts.unfiled()}
    for _ in range(_TRIED):
        if name not in taken:
            return name
        name = next_attempt(name)
    raise ContractError(
        f"{scan}: found {_TRIED} attempts up to {name}; expected a free name: wait a second"
    )
