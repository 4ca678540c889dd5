"""The current table of a scan of rounds, held against the rounds it rests on."""

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.auditing.report import Checks
from scan_pipeline.stages.syncing.current import rests_on
from scan_pipeline.stages.syncing.lineage import newest_lineage
from scan_pipeline.stages.syncing.reading import is_as_sealed, open_current
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt


def check_current(stored: StoredReceipt, scan: Scan, workspace: Workspace, checks: Checks) -> None:
    """Make the current table again from its rounds, where it should rest on this one as the last.

    A break may leave the last rounds out of it, which the next run mends.

    Raises:
        TamperedError: it rests on receipts that do not hold together, or no signed pin holds for
            its files.
    """
    lineage = newest_lineage(scan, workspace=workspace)
    if lineage is None or lineage.tip.receipt_id != stored.receipt_id:
        return
    expected, held = lineage.receipt_ids, rests_on(scan.name, workspace=workspace)
    if held == expected[: len(held)] != expected:
        if held:  # a break leaves a version that was signed for
            open_current(scan, workspace=workspace, accept="observed_pages_only")
        told = f"{len(held)} of {len(expected)} rounds; the next run publishes"
        checks.leave("published", told, expected=stored.receipt_id)
        return
    checks.compare("published", list(expected), list(held))
    opened = open_current(scan, workspace=workspace, accept="observed_pages_only")
    try:
        same = is_as_sealed(scan, opened, workspace=workspace)
    except GateClosedError as error:
        checks.leave("published rows", error.reason)
        return
    checks.compare("published rows", "as staged", "as staged" if same else "other rows")
