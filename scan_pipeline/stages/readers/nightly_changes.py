"""What changed since the last accepted generation before a night, in the words its scope allows."""

from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.readers.changes import Changes, Opened, changes
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import generation_order


def nightly_changes(
    collection: Collection, generation: str, *, workspace: Workspace
) -> Changes | None:
    """Compare an accepted generation with the accepted one of its scope that came before it.

    Of generations judged again the judgement that stands counts, under its own name.

    Args:
        collection: the scan's generations.
        generation: the later one.
        workspace: where their tables lie.

    Returns:
        None where there is no earlier one to compare with.

    Raises:
        GateClosedError: the generation is not accepted, or the receipt of either opens nothing.
        TamperedError: the records of one are not those that were sealed.
    """
    later = collection.accepted(generation)
    if later is None:
        raise GateClosedError(
            scan=collection.scan.name,
            generation=generation,
            reason="it is not accepted, or superseded, or of another scope; expected an accepted "
            "generation that stands: changes between others say nothing of the collection",
        )
    before = (
        each
        for each in reversed(collection.generations())
        if generation_order(each) < generation_order(generation)
    )
    earlier = next(filter(None, map(collection.accepted, before)), None)
    if earlier is None:
        return None
    return changes(
        _opened(earlier, collection),
        _opened(later, collection),
        partition_by=collection.scan.contract.partition_by,
        workspace=workspace,
    )


def _opened(receipt: Receipt, collection: Collection) -> Opened:
    """Open a generation as what its receipt says it is."""
    if is_whole(receipt.coverage_status, receipt.conclusion_scope):
        return collection.generation(receipt.scan_generation, at_least="corroborated")
    return collection.partial(receipt.scan_generation, accept=receipt.conclusion_scope)
