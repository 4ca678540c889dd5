"""What there is to read: scans, their views and columns, and their receipts."""

from typing import Any, Literal

from scan_pipeline.agents.access import access_to
from scan_pipeline.agents.answers import answer
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.opening import open_newest
from scan_pipeline.agents.queries import Query
from scan_pipeline.agents.viewing import Viewed
from scan_pipeline.core.errors import EvidenceError, GateClosedError, ScanPipelineError
from scan_pipeline.core.receipt import receipt_json


@answer
class ListedScan:
    """One scan a principal may read.

    Attributes:
        scan: its name.
        views: the views granted.
        generation: the newest generation that is proven whole; None where none is.
        statement: what its receipt says, or why nothing opens.
    """

    scan: str
    views: tuple[str, ...]
    generation: str | None
    statement: str


@answer
class ScanList:
    """The scans a principal may read, all of them."""

    represents: Literal["list"]
    statement: str
    scans: list[ListedScan]


@answer
class Described:
    """One view of a scan: what may be asked of it.

    Attributes:
        columns: name and type of each column that is seen.
        key: the fields that name a record.
        needs_one_of: fields of which a query must bound one.
        population: rows in the view.
        stopping_rules: how to end.
    """

    represents: Literal["description"]
    statement: str
    scan: str
    view: str
    columns: dict[str, str]
    key: list[str]
    needs_one_of: list[str]
    population: int
    page_size: int
    stopping_rules: str


@answer
class ReceiptAnswer:
    """A receipt as far as a view allows: keys and findings only where every row is seen."""

    represents: Literal["receipt"]
    statement: str
    receipt_id: str
    receipt: dict[str, Any]


STOPPING_RULES = (
    "A page is never the collection. matching_count counts all that match; returned_count only "
    "this page. Say nothing of the whole before conclude gives the sentence: quote it word for "
    "word with its claim id. Absence (`complete_no_match`) needs the engine's count over a "
    "verified whole, or a verdict on every row that matches."
)

_KEYS = ("missing_id_ranges", "findings", "expectations", "evidence", "query")
"""Members of a receipt that name records, values or files."""


def list_scans(desk: Desk, principal: str) -> ScanList:
    """Return the scans that a principal may read.

    Raises:
        ReaderError: it has no access any more.
    """
    policy = desk.policy()
    one = policy.principals.get(principal)
    if one is None or one.revoked:
        raise ReaderError("ask_for_access", "revoked", f"{principal} has no access any more")
    listed = [_listed(desk, scan, views) for scan, views in sorted(one.views.items()) if views]
    return ScanList(
        represents="list",
        statement=f"All {len(listed)} scans that {principal} may read.",
        scans=listed,
    )


def describe_scan(desk: Desk, principal: str, *, scan: str, view: str | None) -> Described:
    """Return what may be asked of a view of a scan.

    Raises:
        ReaderError: it is not granted, or no generation is proven whole.
    """
    policy = desk.policy()
    access = access_to(policy, principal, scan=scan, view=view)
    collection, query = desk.collection(scan), Query()
    now = desk.workspace.clock()
    grounded = open_newest(collection, query, view=access.view, now=now)
    viewed = Viewed(grounded.frame, access)
    _, population = viewed.counts(query)
    shown = {name: str(dtype) for name, dtype in viewed.schema.items()}
    return Described(
        represents="description",
        statement=f"View {access.view} of {scan}: {population:,} {access.noun}, "
        f"{len(shown)} columns; {grounded.ground.coverage_status}.",
        scan=scan,
        view=access.view,
        columns=shown,
        key=[name for name in collection.scan.contract.key if name in shown],
        needs_one_of=list(access.needs_one_of),
        population=population,
        page_size=policy.limits.page_size,
        stopping_rules=STOPPING_RULES,
    )


def read_receipt(desk: Desk, principal: str, *, scan: str, generation: str | None) -> ReceiptAnswer:
    """Return a generation's receipt, or that of the newest that is proven whole.

    Raises:
        ReaderError: no view of the scan is granted, or there is no such receipt.
    """
    policy = desk.policy()
    one = policy.principals.get(principal)
    granted = () if one is None or one.revoked else one.views.get(scan, ())
    views = [access_to(policy, principal, scan=scan, view=view) for view in granted]
    if not views:
        access_to(policy, principal, scan=scan, view=None)
    collection = desk.collection(scan)
    try:
        stored = collection.receipt(generation or collection.standing().opened)
    except (GateClosedError, EvidenceError) as error:
        raise ReaderError("narrow", "no_receipt", str(error)) from error
    told = receipt_json(stored.receipt)
    if not any(access.sees_all_rows and not access.hide for access in views):
        told = {name: value for name, value in told.items() if name not in _KEYS}
    return ReceiptAnswer(
        represents="receipt",
        statement=stored.receipt.statement,
        receipt_id=stored.receipt_id,
        receipt=told,
    )


def _listed(desk: Desk, scan: str, views: tuple[str, ...]) -> ListedScan:
    try:
        collection = desk.collection(scan)
        generation: str | None = collection.standing().opened
        statement = collection.standing().word()
    except ScanPipelineError:
        # Why not may name records that this reader must not know of; read_receipt says what it may.
        generation, statement = None, "no generation is proven whole; ask for a part by its scope"
    return ListedScan(scan=scan, views=views, generation=generation, statement=statement)
