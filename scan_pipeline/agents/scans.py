"""What there is to read: scans, their views and columns, and their receipts."""

from typing import Any, Literal

from scan_pipeline.agents.access import Access, access_to
from scan_pipeline.agents.answers import answer
from scan_pipeline.agents.desk import Desk, size_of
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.opening import Grounded, open_newest
from scan_pipeline.agents.policy import Policy
from scan_pipeline.agents.queries import Query
from scan_pipeline.agents.viewing import Viewed
from scan_pipeline.core.errors import ContractError, GateClosedError, ScanPipelineError
from scan_pipeline.core.receipt_statement import receipt_json
from scan_pipeline.store.signed_notes import taken_out_since


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

_OF_ANY_VIEW = frozenset(
    {
        "receipt_version",
        "scan",
        "scan_generation",
        "restart_of",
        "supersedes",
        "mode",
        "coverage_status",
        "conclusion_scope",
        "consistency",
        "consistency_basis",
        "traversal",
        "stop_reason",
        "observation_started_at",
        "last_page_at",
        "completed_at",
        "accepted",
        "authorized_scope",
    }
)
"""Members of a receipt that name and count no records: what others have is no reader's business.

What is not listed is kept back: a member that comes later has to be thought about first.
"""


def list_scans(desk: Desk, principal: str) -> ScanList:
    """Return the scans that a principal may read.

    Raises:
        ReaderError: it has no access any more.
    """
    policy = desk.policy()
    one = policy.principals.get(principal)
    if one is None or one.revoked:
        raise ReaderError("ask_for_access", "revoked", f"{principal} has no access any more")
    listed = [
        _listed(desk, policy, principal, scan) for scan, views in sorted(one.views.items()) if views
    ]
    answer = ScanList(
        represents="list",
        statement=f"All {len(listed)} scans that {principal} may read.",
        scans=listed,
    )
    desk.budget(policy, principal).spend(size=size_of(answer))
    return answer


def describe_scan(desk: Desk, principal: str, *, scan: str, view: str | None) -> Described:
    """Return what may be asked of a view of a scan.

    Raises:
        ReaderError: it is not granted, or no generation is proven whole.
    """
    policy = desk.policy()
    access = access_to(policy, principal, scan=scan, view=view)
    collection, query = desk.collection(scan), Query()
    budget = desk.budget(policy, principal)
    with budget.taking(size=policy.limits.answer_bytes) as taken:
        now = desk.workspace.clock()
        grounded = open_newest(collection, query, access=access, now=now)
        viewed = Viewed(grounded.frame, access)
        _, population = viewed.counts(query)
        described = _described(desk, policy, access, grounded, viewed, population=population)
        taken.used = size_of(described)
    return described


def _described(
    desk: Desk,
    policy: Policy,
    access: Access,
    grounded: Grounded,
    viewed: Viewed,
    *,
    population: int,
) -> Described:
    collection, scan = desk.collection(access.scan), access.scan
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
    collection, budget = desk.collection(scan), desk.budget(policy, principal)
    with budget.taking(size=policy.limits.answer_bytes) as taken:
        try:
            stored = collection.receipt(generation or collection.standing().opened)
        except (GateClosedError, ContractError) as error:
            raise ReaderError(
                "narrow", "no_receipt", f"{scan} has no such receipt; expected a generation's name"
            ) from error
        everything = any(access.sees_everything for access in views)
        receipt, place = stored.receipt, desk.workspace
        taken_out = taken_out_since(receipt, lake=place.lake, trust=place.trust)
        since = f" Since then: {'; '.join(taken_out)}." if taken_out else ""
        told = receipt_json(receipt)
        if not everything:
            told = {name: value for name, value in told.items() if name in _OF_ANY_VIEW}
        answer = ReceiptAnswer(
            represents="receipt",
            statement=f"{receipt.statement}{since}"
            if everything
            else f"{scan} {receipt.scan_generation}: {receipt.coverage_status}, "
            f"{receipt.conclusion_scope}; its counts are not told through a view of a part.",
            receipt_id=stored.receipt_id,
            receipt=told,
        )
        size = size_of(answer)
        if size > policy.limits.answer_bytes:
            raise ReaderError(
                "ask_for_access",
                "too_large",
                f"the receipt has {size:,} bytes and an answer may have "
                f"{policy.limits.answer_bytes:,}; `scan-pipeline receipt` shows it",
            )
        taken.used = size
    return answer


def _listed(desk: Desk, policy: Policy, principal: str, scan: str) -> ListedScan:
    views = policy.principals[principal].views[scan]
    generation: str | None = None
    # Why not may name records that this reader must not know of; read_receipt says what it may.
    statement = "no generation is proven whole; ask for a part by its scope"
    try:
        seen = [access_to(policy, principal, scan=scan, view=view) for view in views]
        standing = desk.collection(scan).standing()
        generation = standing.opened
        everything = any(access.sees_everything for access in seen)
        statement = standing.word() if everything else standing.plain_word()
    except ScanPipelineError:
        pass
    return ListedScan(scan=scan, views=views, generation=generation, statement=statement)
