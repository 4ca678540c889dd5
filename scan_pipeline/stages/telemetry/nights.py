"""Tells telemetry of walks under way and of nights that are over; nothing where it is off."""

from collections.abc import Callable, Iterable

from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.stages.enumerate import Progress
from scan_pipeline.stages.reporting.material import Ledger
from scan_pipeline.stages.shelf import Shelf, pages_of
from scan_pipeline.stages.standing import observed_at
from scan_pipeline.stages.telemetry.instruments import NightSeen
from scan_pipeline.stages.telemetry.setup import quietly, telemetry_of
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt


def watched(progress: Progress, *, scan: str, workspace: Workspace) -> Progress:
    """Return what is told of a walk's running figures, watched where telemetry is on.

    Raises:
        ConfigurationError: telemetry is asked for and cannot be had; nothing was begun yet.
    """
    telemetry = telemetry_of(workspace.environ)
    return progress if telemetry is None else telemetry.progress(scan, progress)


def tell_nights(
    nights: Iterable[StoredReceipt], *, workspace: Workspace, warn: Callable[[str], None]
) -> None:
    """Tell of generations that have their receipt; what goes wrong with it is a warning.

    Args:
        nights: their receipts, oldest first.
        workspace: where their events lie.
        warn: told what went wrong.
    """

    def tell() -> None:
        telemetry = telemetry_of(workspace.environ)
        for stored in nights if telemetry is not None else ():
            telemetry.night(_seen(stored, workspace))  # pyright: ignore[reportOptionalMemberAccess]

    quietly(tell, warn=warn)


def _seen(stored: StoredReceipt, workspace: Workspace) -> NightSeen:
    shelf = Shelf(stored.receipt.scan, workspace=workspace)
    accepted = next((each for each in shelf.standing() if each.receipt.accepted), None)
    return NightSeen(
        stored=stored,
        ledger=_ledger(stored, workspace),
        accepted_at=None if accepted is None else observed_at(accepted.receipt),
    )


def _ledger(stored: StoredReceipt, workspace: Workspace) -> Ledger | None:
    receipt = stored.receipt
    store = workspace.store(receipt.scan, receipt.scan_generation, evidence=pages_of(receipt))
    try:
        first, second = store.events(), store.events(SECOND_WALK)
    except ScanPipelineError:
        return None  # the figures of the receipt are told all the same
    if not first:
        return None
    walks = (first, second) if second else (first,)
    return Ledger(walks=walks, contract=first[0].facts["contract"])
