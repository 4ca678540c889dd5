"""One record as it was admitted: its bytes, from the page that the receipt pins it to."""

from typing import Any

from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.core.canonical import canonical_json, leaf_hash, parse_exact
from scan_pipeline.core.errors import ErasedError, EvidenceError
from scan_pipeline.core.value import record
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.shelf import pages_of
from scan_pipeline.stages.workspace import Workspace


@record
class Admitted:
    """A record's exact value; every number an int or a Decimal.

    Attributes:
        value: the parsed record.
        form: its canonical form, by which it is compared.
    """

    value: Any
    form: bytes


def admitted_record(
    collection: Collection,
    *,
    workspace: Workspace,
    generation: str,
    page: int,
    position: int,
    version: str,
) -> Admitted:
    """Read a record from the evidence; the columns it was staged in may have lost its form.

    Args:
        collection: the scan's generations.
        workspace: where the evidence lies.
        generation: of which generation.
        page: page of the walk on which it came, from 1.
        position: its place there, from 0.
        version: its leaf hash, hex.

    Raises:
        ReaderError: the page is erased or is not the one that was admitted.
    """
    receipt = collection.receipt(generation).receipt
    store = workspace.store(receipt.scan, generation, evidence=pages_of(receipt))
    source = workspace.source(collection.scan)
    try:
        body = next((body for number, body in store.bodies() if number == page), b"")
        text = source.records(body)[position]
        if leaf_hash(text).hex() != version:
            raise _unproven("its bytes have another leaf hash")
        value = parse_exact(text)
    except (EvidenceError, ErasedError, IndexError) as error:
        raise _unproven(type(error).__name__) from error
    finally:
        source.close()
    return Admitted(value=value, form=canonical_json(value))


def _unproven(why: str) -> ReaderError:
    return ReaderError(
        "stop",
        "record_unproven",
        f"the record cannot be read from the page it came on ({why}); expected the page as it was "
        "admitted",
    )
