"""When a generation is followed by another attempt from nothing, and what that one is called."""

from scan_pipeline.core.receipt import last_stop_reason
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.walking.stopped import BEGUN_AGAIN
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import next_attempt
from scan_pipeline.store.receipts import Untrusted, generation_order


def attempt_after(generation: str, stop_reason: str, *, scan: Scan) -> str | None:
    """Return the name of the attempt that follows, None where none does.

    Nothing of an expired generation is carried over, and at most `operation.restarts` follow the
    first.
    """
    attempts = generation_order(generation)[1]
    if stop_reason not in BEGUN_AGAIN or attempts > scan.operation.restarts:
        return None
    return next_attempt(generation)


def attempt_before(generation: str, *, scan: Scan, workspace: Workspace) -> str | None:
    """Return the expired attempt that a generation follows, None where it begins anew.

    Two generations of one second share a name too, hence the look at the receipt.
    """
    first, number = generation_order(generation)
    if number == 1:
        return None
    before = first if number == 2 else f"{first}.{number - 1}"
    if not workspace.receipts(scan.name).has(before):
        return None
    found = workspace.receipts(scan.name).look(before, trust=workspace.trust)
    if isinstance(found, Untrusted):
        return None
    return before if last_stop_reason(found.receipt) in BEGUN_AGAIN else None
