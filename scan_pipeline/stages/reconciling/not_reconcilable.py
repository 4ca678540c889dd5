"""A closed walk that cannot be staged or reconciled, and will not be by trying again.

The reason lies in its evidence or its contract, which do not change: it is certified as failed, so
that the next run begins anew. What the disk, a key or a defect of ours keeps from being done raises
as ever; tomorrow it may be done.
"""

from collections.abc import Iterable, Sequence

from scan_pipeline.core.coverage import WITHOUT_FIGURES
from scan_pipeline.core.errors import (
    ConfigurationError,
    ContractError,
    KeyDestroyedError,
    ProtocolError,
    ScanPipelineError,
    TamperedError,
)
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.reconciliation import no_figures
from scan_pipeline.stages.reconcile import Reconciled
from scan_pipeline.store.events import Event

CODE = "not_reconcilable"
ERASED = "data_key_destroyed"


def why_not_staged(error: ScanPipelineError) -> Finding:
    """Return the finding of an error that the same evidence and contract bring every time.

    Raises:
        ScanPipelineError: it is another one.
    """
    if isinstance(error, KeyDestroyedError):
        return finding(ERASED, expected="pages that a key on the ring opens", found=error)
    if isinstance(error, TamperedError) and error.what == "body":
        return finding("evidence_altered", expected="the bodies that were admitted", found=error)
    if isinstance(error, ProtocolError):
        return finding(CODE, expected="pages that can be taken apart", found=error)
    return _of_contract(error, expected="records that can be staged")


def why_not_reconciled(error: ScanPipelineError) -> Finding:
    """Return the finding of an error that the contract brings every time; raises any other."""
    return _of_contract(error, expected="a contract that the records can be held against")


def is_not_reconcilable(staged: Iterable[Finding]) -> bool:
    """Say whether the findings of the records stage tell that there are no figures."""
    return any(each.code in WITHOUT_FIGURES for each in staged)


def not_reconciled(events: Sequence[Event]) -> Reconciled:
    """Return what is known without figures: how many records the pages hold."""
    returned = sum(event.returned or 0 for event in events if event.event == "page")
    return Reconciled(figures=no_figures(records=returned), partitions=())


def _of_contract(error: ScanPipelineError, *, expected: str) -> Finding:
    if not isinstance(error, ContractError) or isinstance(error, ConfigurationError):
        raise error
    return finding(CODE, expected=expected, found=error)
