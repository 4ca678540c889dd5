"""Whether somebody walks: the open generation that moved last, as the lake alone tells it."""

from datetime import datetime

from scan_pipeline.stages.walking.walks import last_walk
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import new_generation
from scan_pipeline.store.receipts import generation_order


def newest_moved(scan: str, *, workspace: Workspace) -> tuple[str, datetime] | None:
    """Return the newest generation without a receipt, and when its walk moved last, UTC.

    A walk that broke off moves no more; how long it may stand still is for the caller to say.

    Returns:
        None where every generation that was begun has its receipt.
    """
    now = new_generation(workspace.clock())
    begun = workspace.store(scan, now).pages().generations()
    certified = {*workspace.receipts(scan).committed_generations()}
    newest = max(
        (each for each in begun if each not in certified), key=generation_order, default=None
    )
    if newest is None:
        return None
    events = last_walk(workspace.store(scan, newest))
    return (newest, events[-1].received_at) if events else None
