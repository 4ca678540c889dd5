"""One record erased across all generations of a scan, on request, and what was done signed.

The receipt stays as it was signed; beside it an amendment says how many records were taken out,
when and why, and pins what stands in the place of what the receipt pins. What stays of a record are
its place and its digests, with which every figure of the receipt still comes out. A receipt that
names the key itself cannot stay: a redacted copy, signed anew, names the one it stands for.
"""

from scan_pipeline.core.amendment import ErasedPage
from scan_pipeline.core.errors import ContractError, EvidenceError
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.erasing.generation import facts_named
from scan_pipeline.stages.erasing.naming import Named
from scan_pipeline.stages.erasing.rewriting import Rewriting
from scan_pipeline.stages.erasing.searching import files_that_name
from scan_pipeline.stages.maintain import tables_of
from scan_pipeline.stages.maintaining.one_at_a_time import one_at_a_time
from scan_pipeline.stages.publish import publish_again, published_generation
from scan_pipeline.stages.run import repair_receipts
from scan_pipeline.stages.shelf import pages_of
from scan_pipeline.stages.trial_place import trials_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import FIRST_WALK
from scan_pipeline.store.published_table import open_published
from scan_pipeline.store.receipts import StoredReceipt, Untrusted
from scan_pipeline.store.sweeping import forget_log, forget_statistics


@record
class ErasedIn:
    """What was taken out of one generation.

    Attributes:
        generation: its name; of a trial, with `trials/` before it.
        records: rows of the key.
        pages: page bodies that held or named it.
        receipt: id of the redacted copy, where its receipt named the key.
    """

    generation: str
    records: int
    pages: int
    receipt: str | None


@record
class Left:
    """Where the key may still be, and why."""

    where: str
    why: str


@record
class Erasure:
    """What an erasure came to.

    Attributes:
        key_hash: of the erased key, hex.
        erased: generations of which something was taken out, oldest first.
        left: where the key may still be; empty where nothing was found any more.
    """

    key_hash: str
    erased: tuple[ErasedIn, ...]
    left: tuple[Left, ...]


def erase(
    scan: Scan,
    key: tuple[str | int, ...],
    *,
    because: str,
    by: str | None,
    workspace: Workspace,
) -> Erasure:
    """Take a record out of every sealed generation of a scan, trials included.

    Rows, findings and summaries are written again without it; the bodies of pages that held or
    named it are gone, and so are all tokens of those generations; the published table is put there
    anew, old files and log entries are removed, and at last every file is looked into. A break
    anywhere leaves a lake that reads right; doing it again completes it.

    Args:
        scan: the contract as it is now.
        key: values of its key fields, in order.
        because: why, e.g. the number of the request; kept, so it must not name the key.
        by: who asked.
        workspace: where.

    Raises:
        ContractError: the key has another number of values, the words name it, or nothing says why.
        WriterConflictError: another process maintains or erases.
        ConfigurationError: the signing key is missing.
    """
    if len(key) != len(scan.contract.key):
        raise ContractError(
            f"found a key of {len(key)} values; expected {', '.join(scan.contract.key)}"
        )
    named = Named(values=key)
    if not because.strip() or named.is_in(because) or named.is_in(by or ""):
        raise ContractError(
            "found no reason, or one that names the key; expected e.g. the number of the request: "
            "it is kept for ever"
        )
    erased, left = list[ErasedIn](), list[Left]()
    with one_at_a_time(scan.name, workspace=workspace):
        trials = workspace.at(trials_of(workspace.project))
        for place, prefix in ((trials, "trials/"), (workspace, "")):
            if place.lake.exists(f"{place.lake.root}/evidence/{scan.name}"):
                erasing = _Erasing(scan, named, because=because, by=by, workspace=place)
                erasing.run(prefix)
                erased += erasing.erased
                left += erasing.left
        told = {each.where for each in left}
        for file in files_that_name(named, scan=scan.name, workspace=workspace):
            if file not in told:
                left.append(Left(where=file, why="it names the key: another record may mention it"))
    return Erasure(key_hash=named.hash.hex(), erased=tuple(erased), left=tuple(left))


class _Erasing:
    """Erases a record in one lake."""

    def __init__(
        self, scan: Scan, named: Named, *, because: str, by: str | None, workspace: Workspace
    ) -> None:
        self._scan, self._named, self._workspace = scan, named, workspace
        self._rewriting = Rewriting(scan.name, named, because=because, by=by, workspace=workspace)
        self.erased = list[ErasedIn]()
        self.left = list[Left]()

    def run(self, prefix: str) -> None:
        """Erase in every sealed generation; tell what could not be."""
        scan, workspace = self._scan.name, self._workspace
        repair_receipts(scan, workspace=workspace)
        receipts, sealed = workspace.receipts(scan), list[StoredReceipt]()
        for generation in receipts.committed_generations():
            found = receipts.look_committed(generation, trust=workspace.trust)
            if found is None:
                self._leave(prefix + generation, "its receipt does not verify")
            else:
                sealed.append(found)
        walked = workspace.store(scan, "20000101T000000Z").pages().generations()
        still_open = [each for each in walked if not receipts.has(each)]
        for generation in still_open:
            self._leave(prefix + generation, "it is open: let a run or `maintain` seal it first")
        for stored in sealed:
            try:
                self._in(stored, sealed, prefix)
            except EvidenceError as error:
                self._leave(prefix + stored.receipt.scan_generation, str(error))
        self._publish(sealed)
        if not still_open:
            for table in tables_of(scan, workspace=workspace):
                forget_log(table)

    def _in(self, stored: StoredReceipt, sealed: list[StoredReceipt], prefix: str) -> None:
        receipt, rewriting = stored.receipt, self._rewriting
        generation = receipt.scan_generation
        records = rewriting.staged(receipt)
        pages = set[ErasedPage]()
        if pages_of(receipt) == generation and "pages" in receipt.evidence:
            users = [each.receipt for each in sealed if pages_of(each.receipt) == generation]
            pages, whole = rewriting.bodies(receipt, users)
            if not whole:
                self._leave(f"{prefix}{generation} bodies", "the data key is missing: not opened")
        store = self._workspace.store(self._scan.name, generation)
        if facts_named(store, self._named):
            where = f"{prefix}{generation} ledger"
            self._leave(where, "its linked facts name the key; they cannot be altered")
        new = rewriting.receipt(stored)
        if records or pages or new:
            self.erased.append(
                ErasedIn(
                    generation=prefix + generation,
                    records=sum(each.shard == FIRST_WALK for each in records),
                    pages=len(pages),
                    receipt=new,
                )
            )

    def _publish(self, sealed: list[StoredReceipt]) -> None:
        """Put the published generation there again where something was taken out of it.

        What is published of a scan of rounds rests on all of them.
        """
        scan, workspace = self._scan, self._workspace
        held = published_generation(scan.name, workspace=workspace)
        if held is None:
            return
        found = workspace.receipts(scan.name).look(held, trust=workspace.trust)
        if isinstance(found, Untrusted):
            self._leave(f"published/{scan.name}", found.reason)
        elif any(
            self._rewriting.is_redacted(each.receipt)
            for each in (sealed if scan.contract.mode == "sync" else [found])
        ):
            publish_again(found, scan, workspace=workspace)
            forget_statistics(open_published(workspace.lake, scan.name))

    def _leave(self, where: str, why: str) -> None:
        self.left.append(Left(where=where, why=why))
