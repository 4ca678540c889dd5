"""An audit's looks at rows: records and bodies against their pages, the published table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from scan_pipeline.core.canonical import items_digest, leaf_hashes
from scan_pipeline.core.errors import ConfigurationError, ErasedError, TamperedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.auditing.current import check_current
from scan_pipeline.stages.auditing.report import UNREADABLE, Checks
from scan_pipeline.stages.publish import GENERATION, RECEIPT_ID, rows_to_publish
from scan_pipeline.stages.reconciling.not_reconcilable import is_not_reconcilable
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore
from scan_pipeline.store.published_table import open_published
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.row_comparison import RowComparison
from scan_pipeline.store.tables import Table


def is_gone(table: Callable[[], Table], generation: str) -> bool:
    """Say whether nothing of a generation is left in a table; what cannot be read is not gone."""
    try:
        return not table().files(generation)
    except UNREADABLE:
        return False


def check_leaves(
    store: GenerationStore,
    events: Sequence[Event],
    checks: Checks,
    *,
    shard: int = FIRST_WALK,
    redactions: Redactions = Redactions(),  # noqa: B008  # a frozen value
) -> None:
    """Hold the staged leaves of a walk against the items digest of each page.

    Of an erased record its leaf is put back where it stood.

    Raises:
        TamperedError: a page has other records than were admitted.
    """
    nothing = is_gone(store.records, store.generation)
    if nothing and is_not_reconcilable(store.read_findings(stage="records")):
        checks.leave("records by page", "none could be staged, as the findings say")
        return
    admitted = {event.page: event.items_digest for event in events if event.event == "page"}
    seen = set[int]()
    table = store.records() if shard == FIRST_WALK else store.second_walk()
    erased = redactions.leaves(shard)
    for page, leaves in _by_page(table, store.generation, erased):
        if page in seen or items_digest(leaves) != admitted.get(page):
            raise TamperedError("records", f"the records of page {page} are not its own")
        seen.add(page)
    empty = items_digest(())
    for page, digest in admitted.items():
        if page not in seen and digest != empty:
            raise TamperedError("records", f"page {page} has no records; expected some")
    checks.agree(name_of("records by page", shard), f"as admitted on {len(admitted)} pages")


def name_of(check: str, shard: int) -> str:
    """Return the name of a check that is made of each walk."""
    return check if shard == FIRST_WALK else f"{check} of the second walk"


def check_bodies(
    store: GenerationStore,
    events: Sequence[Event],
    source: Source,
    checks: Checks,
    *,
    shard: int = FIRST_WALK,
    redactions: Redactions = Redactions(),  # noqa: B008  # a frozen value
) -> bool:
    """Open every body and hold it against its digests; say whether that was possible.

    Bodies of pages that held an erased record are gone with it, and are not missed.

    Raises:
        TamperedError: a body is not the one that was admitted.
    """
    admitted = {event.page: event for event in events if event.event == "page"}
    erased = {page for walk, page in redactions.pages if walk == shard}
    seen = list[int]()
    try:
        for page, body in store.bodies(shard, past_erased=bool(erased)):
            event = admitted.get(page)
            if event is None or sha256(body).digest() != event.body_digest:
                raise TamperedError("pages", f"the body of page {page} is not the admitted one")
            if items_digest(leaf_hashes(source.records(body))) != event.items_digest:
                raise TamperedError("pages", f"the records of page {page} are not its own")
            seen.append(page)
    except (ConfigurationError, ErasedError) as error:
        checks.leave(name_of("bodies", shard), error, expected=f"{len(admitted)} bodies")
        return False
    finally:
        source.close()
    if erased and not seen and admitted.keys() - erased:
        checks.leave(name_of("bodies", shard), "dropped", expected=f"{len(admitted)} bodies")
        return False
    expected = sorted(page for page in admitted if page is not None and page not in erased)
    # Between what was said and what was done a body may still be there.
    checks.compare(name_of("bodies", shard), expected, sorted(set(seen) - erased))
    return True


def check_published(
    stored: StoredReceipt, scan: Scan, workspace: Workspace, checks: Checks
) -> None:
    """Hold the published table against the records, where it should hold this generation.

    That is the newest accepted one. A break may leave an older one in its place, which the next
    run mends; rows or a commit that no receipt names are a disagreement.
    """
    receipt = stored.receipt
    generation = receipt.scan_generation
    if receipt.round is not None:
        check_current(stored, scan, workspace, checks)
        return
    if not receipt.accepted or not _is_to_be_published(stored, workspace):
        return
    table = open_published(workspace.lake, scan.name)
    if not table.exists():
        checks.leave("published", "no table; the next run publishes", expected=stored.receipt_id)
        return
    told = table.latest_commit()
    older = told.get(GENERATION)
    if older != generation and older in workspace.receipts(scan.name).generations():
        checks.leave("published", f"{older}; the next run publishes", expected=generation)
        return
    checks.compare("published", stored.receipt_id, told.get(RECEIPT_ID))
    staged = workspace.store(scan.name, generation).records()
    held = (generation,) if staged.files(generation) else ()
    checks.compare("published generations", held, table.generations())
    comparison = RowComparison(table.batches(generation))
    for batch in rows_to_publish(stored, staged):
        comparison.take(batch)
    found = "as staged" if comparison.equal() else "other rows"
    checks.compare("published rows", "as staged", found)


def _is_to_be_published(stored: StoredReceipt, workspace: Workspace) -> bool:
    """Say whether this is the newest accepted generation that stands."""
    shelf = Shelf(stored.receipt.scan, workspace=workspace)
    accepted = (each for each in shelf.standing() if each.receipt.accepted)
    newest = next(accepted, None)
    return newest is not None and newest.receipt_id == stored.receipt_id


def _by_page(
    records: Table, generation: str, erased: Mapping[int, Mapping[int, bytes]]
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield each page's leaves in order of position; rows of a page stand together."""
    page: int | None = None
    leaves: dict[int, bytes] = {}
    seen = set[int]()
    columns = ("_page", "_position", "_leaf_hash")
    for batch in records.batches(generation, columns=columns):
        for number, at, leaf in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):
            if number != page:
                if page is not None:
                    yield page, _in_order(leaves)
                page, leaves = number, dict(erased.get(number, {}))
                seen.add(number)
            leaves[at] = leaf
    if page is not None:
        yield page, _in_order(leaves)
    for number in sorted(erased.keys() - seen):
        yield number, _in_order(erased[number])


def _in_order(leaves: Mapping[int, bytes]) -> list[bytes]:
    return [leaves[at] for at in sorted(leaves)]
