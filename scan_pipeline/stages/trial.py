"""A trial: a few pages of a scan, walked and certified apart, to see whether its file is right.

Trials lie below the lake in a place of their own. No reader, schedule, alert or later night looks
there; what is there is of another scope than the scan's nights, is never accepted, and is judged
`observed_pages_only` at most.
"""

from collections.abc import Callable

from scan_pipeline.core.scan import Scan, trial_of
from scan_pipeline.stages.enumerate import Progress
from scan_pipeline.stages.naming import free_generation
from scan_pipeline.stages.pipeline import Pipeline, never_cancelled
from scan_pipeline.stages.run import finish
from scan_pipeline.stages.trial_place import trials_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt, generation_order


def run_trial(
    scan: Scan,
    *,
    pages: int,
    workspace: Workspace,
    check_cancelled: Callable[[], None] = never_cancelled,
    interruptions: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    progress: Progress = lambda _: None,
) -> StoredReceipt:
    """Walk a few pages of a scan, stage them, and certify that they are no more than that.

    A trial takes nothing up, closes nothing of the scan's own and is never taken up itself.

    Args:
        scan: the scan.
        pages: how many pages, at most.
        workspace: of the scan; the trial lies below its lake.
        check_cancelled: called before each request; raises CancelledError to end the walk.
        interruptions: exceptions from outside that mean the same.
        progress: told of the running figures.

    Raises:
        ConfigurationError: a key, secret or folder is missing.
        ContractError: the record schema cannot be resolved.
    """
    workspace.begin(scan.name)
    apart = workspace.at(trials_of(workspace.project))
    names = (free_generation(scan.name, workspace=each) for each in (workspace, apart))
    generation = max(names, key=generation_order)  # after all of both, so that it names one thing
    pipeline = Pipeline(trial_of(scan, pages=pages), generation, workspace=apart)
    pipeline.pages(check_cancelled=check_cancelled, interruptions=interruptions, progress=progress)
    return finish(pipeline)
