"""Whether the code and the documented facts of a walk are those that earlier receipts stand on."""

from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.receipt import AdapterRevision, ProviderRevision, Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.certify import provider_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.checks import CheckStore, ContractCheck
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.receipts import generation_order

UNCHECKED = "contract_unchecked"


def unchecked(
    scan: Scan, adapter: AdapterRevision, *, generation: str, workspace: Workspace
) -> dict[str, str] | None:
    """Return what changed without a check since the scan's receipts before, None for nothing.

    Compared is the newest receipt that was not itself unchecked: else one night would be enough to
    make a changed connector the usual one. A scan's first walk has nothing to be compared with.

    Args:
        scan: what is about to be walked.
        adapter: the code that will.
        generation: the generation it makes.
        workspace: where.

    Returns:
        What was expected and what was found, in words.
    """
    now = (adapter, provider_of(scan))
    earlier = [
        each
        for each in workspace.receipts(scan.name).generations()
        if generation_order(each) < generation_order(generation)
    ]
    if not earlier:
        return None
    before = _last_checked(scan.name, earlier, workspace=workspace)
    if before is not None and (before.adapter, before.provider) == now:
        return None
    if CheckStore(workspace.lake, scan.name).find(*now, trust=workspace.trust) is not None:
        return None
    expected = (
        f"{_told(before.adapter, before.provider)}, as in generation {before.scan_generation}"
        if before is not None
        else "a receipt to be compared with; none of those there are can be read"
    )
    return {"expected": expected, "found": _told(*now)}


def other_code(opened: Mapping[str, Any], adapter: AdapterRevision) -> list[Finding]:
    """Return a finding where other code takes a walk up than began it.

    Args:
        opened: facts of the walk's open event.
        adapter: the code that goes on.
    """
    began = AdapterRevision(**opened["adapter"])
    if began == adapter:
        return []
    expected = f"the code that began the walk, {_told(began, None)}"
    return [finding(UNCHECKED, expected=expected, found=_told(adapter, None))]


def record_check(scan: Scan, *, workspace: Workspace) -> ContractCheck:
    """Write down, signed, that this scan's code and facts were checked on its source and hold.

    For `check --connect`, once every question it asked was answered as declared.

    Raises:
        ConfigurationError: the project's signing key is missing and may not be begun here.
    """
    source = workspace.source(scan)
    try:
        adapter = source.adapter
    finally:
        source.close()
    now = workspace.clock()
    return CheckStore(workspace.lake, scan.name).write(
        adapter, provider_of(scan), signer=signing_signer(workspace.project, now=now), at=now
    )


def _last_checked(scan: str, generations: list[str], *, workspace: Workspace) -> Receipt | None:
    """Return the newest of these receipts that can be read and was not unchecked itself."""
    receipts = workspace.receipts(scan)
    for generation in reversed(generations):
        try:
            receipt = receipts.read(generation, trust=workspace.trust).receipt
        except ScanPipelineError:
            continue
        if all(each.code != UNCHECKED for each in receipt.findings.first):
            return receipt
    return None


def _told(adapter: AdapterRevision, provider: ProviderRevision | None) -> str:
    code = f"{adapter.name} {adapter.revision}"
    return code if provider is None else f"{code} with {provider.name} {provider.revision}"
