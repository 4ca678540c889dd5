"""`run --trial`: a few pages staged apart, and what they show of the scan file."""

import time
from typing import TYPE_CHECKING, Any

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, print_facts, print_json, print_table, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.core.scan import Scan
    from scan_pipeline.stages.workspace import Workspace
    from scan_pipeline.store.receipts import StoredReceipt


def try_scan(settings: Settings, named: str, *, pages: int, as_json: bool) -> ExitCode:
    """Run a trial and show what came; never accepted, so that nothing takes it for a night."""
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.cli.cancellation import Cancellation
    from scan_pipeline.cli.progress import WalkProgress
    from scan_pipeline.core.receipt_statement import receipt_json
    from scan_pipeline.stages.trial import run_trial
    from scan_pipeline.stages.trial_place import trials_of

    scan = settings.scan(named)
    with Cancellation(told=say) as cancellation:
        workspace = settings.workspace(sleep=cancellation.sleep)
        with WalkProgress(clock=time.monotonic) as progress:
            stored = run_trial(
                scan,
                pages=pages,
                workspace=workspace,
                check_cancelled=cancellation.check,
                interruptions=(),
                progress=progress,
            )
    apart = workspace.at(trials_of(workspace.project))
    receipt, columns = stored.receipt, columns_of(scan, stored, apart)
    path = apart.lake.receipt_path(receipt.scan, receipt.scan_generation)
    if as_json:
        facts = {"trial": True, "receipt_id": stored.receipt_id, "accepted": receipt.accepted}
        print_json({**facts, "path": path, "columns": columns, "receipt": receipt_json(receipt)})
        return ExitCode.NOT_ACCEPTED
    print_account(Filed(receipt=receipt, receipt_id=stored.receipt_id, path=path))
    answer()
    inferred = "inferred from these pages" if scan.record_schema is None else "as declared"
    print_table(
        ("column", "type", "filled"),
        [(each["name"], each["type"], each["filled"]) for each in columns],
        title=f"columns, {inferred}",
    )
    read = f"scan-pipeline --trials read {named} {receipt.scan_generation}"
    print_facts([("read them", f"{read} --accept observed_pages_only")])
    return ExitCode.NOT_ACCEPTED


def columns_of(
    scan: "Scan", stored: "StoredReceipt", workspace: "Workspace"
) -> list[dict[str, Any]]:
    """Return the staged columns: name, type, and how many records have a value there.

    Nothing is opened of a trial whose evidence disagrees: its columns would be no columns.
    """
    import polars as pl

    from scan_pipeline.core.errors import GateClosedError
    from scan_pipeline.core.scan import trial_of
    from scan_pipeline.stages.unlock import LABELS, open_partial

    try:
        opened = open_partial(
            stored, trial_of(scan, pages=1), workspace=workspace, accept="observed_pages_only"
        )
    except GateClosedError:
        return []
    frame = opened.labelled_frame()
    kept = {
        name: kind
        for name, kind in frame.collect_schema().items()
        if name not in LABELS and not name.startswith("_") and name != "scan_generation"
    }
    filled = frame.select([pl.col(name).count() for name in kept]).collect() if kept else None
    return [
        {"name": name, "type": str(kind), "filled": 0 if filled is None else filled[name][0]}
        for name, kind in kept.items()
    ]
