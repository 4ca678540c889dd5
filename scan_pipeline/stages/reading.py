"""A scan's generations, opened by what they prove: where most readers begin."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.contract import accept_level
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.coverage import satisfies
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import WHOLE_COLLECTION, ConclusionScope
from scan_pipeline.stages.scan_lookup import find_scan
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.standing import (
    Standing,
    check_age,
    is_young_enough,
    observed_at,
    what_became,
)
from scan_pipeline.stages.syncing.reading import CurrentCollection, open_current
from scan_pipeline.stages.unlock import (
    PartialCollection,
    VerifiedCollection,
    Wish,
    open_partial,
    open_superseded,
    unlock,
)
from scan_pipeline.stages.workspace import Workspace, open_workspace
from scan_pipeline.store.receipts import StoredReceipt, Untrusted


def open_collection(
    named: str,
    *,
    lake: str | Path | None = None,
    folder: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    max_age: timedelta | None = None,
) -> "Collection":
    """Open a scan's generations by the scan's name or file.

    Late data, by the scan's schedule, is told of in the log `scan_pipeline`, which Python shows
    on stderr unless told otherwise; it is refused where `max_age` says so.

    Args:
        named: name of a scan of the project, or path of a scan file.
        lake: where the tables lie; None for the project's own.
        folder: folder whose project is meant; None for the working folder.
        environ: variables; None for those of the process.
        max_age: how long ago what is opened may have been read from its source; None for any age.

    Raises:
        ContractError: there is no such scan, or its file does not parse.
        ConfigurationError: nothing says where the lake is.
    """
    folder = Path.cwd() if folder is None else Path(folder)
    variables = os.environ if environ is None else environ
    lake = None if lake is None else str(lake)
    workspace = open_workspace(lake=lake, cwd=folder, environ=variables)
    scan = find_scan(named, folder=folder).parse()
    tell = logging.getLogger("scan_pipeline").warning
    return Collection(scan, workspace=workspace, max_age=max_age, tell=tell)


class Collection:
    """The generations of one scan, to be opened by what they prove.

    Args:
        scan: the contract the reader means.
        workspace: where the tables lie.
        max_age: how long ago what is opened may have been read from its source; None for any age.
        tell: is told in a sentence where what `latest` opens is late by the schedule.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        workspace: Workspace,
        max_age: timedelta | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._scan, self._workspace = scan, workspace
        self._max_age, self._tell = max_age, tell

    @property
    def scan(self) -> Scan:
        """The contract the reader means."""
        return self._scan

    def latest(
        self, *, at_least: Wish = "verified", max_age: timedelta | None = None
    ) -> VerifiedCollection:
        """Open the newest generation that is proven whole.

        Args:
            at_least: the least status; `corroborated` must be asked for by name.
            max_age: how long ago it may have been read; None for what the collection was made with.

        Raises:
            GateClosedError: there is none, or it is older; the message says what became of newer
                ones.
        """
        stored, standing = self._newest(at_least)
        allowed = self._max_age if max_age is None else max_age
        if allowed is not None and not is_young_enough(standing.age, max_age=allowed):
            raise GateClosedError(
                scan=self._scan.name,
                generation=stored.receipt.scan_generation,
                reason=f"{standing.word()}; expected at most {allowed}",
            )
        if standing.is_late:
            self._tell(f"{self._scan.name}: {standing.plain_word()}")
        return unlock(stored, self._scan, workspace=self._workspace, at_least=at_least)

    def generation(self, generation: str, *, at_least: Wish = "verified") -> VerifiedCollection:
        """Open one generation by name.

        Raises:
            GateClosedError: it has no receipt, one that does not say as much, or it is too old.
        """
        stored = self._young_enough(self.receipt(generation))
        return unlock(stored, self._scan, workspace=self._workspace, at_least=at_least)

    def partial(self, generation: str, *, accept: ConclusionScope) -> PartialCollection:
        """Open what was read of one generation, as no more than its scope; raises as above."""
        stored = self._young_enough(self.receipt(generation))
        return open_partial(stored, self._scan, workspace=self._workspace, accept=accept)

    def newest_part(self, *, accept: ConclusionScope) -> PartialCollection:
        """Open the newest generation that says at least `accept`, as no more than its scope.

        Raises:
            GateClosedError: there is none.
        """
        opened = next(self._parts(accept), None)
        if opened is None:
            raise GateClosedError(
                scan=self._scan.name, generation=None, reason=f"nothing opens as {accept}"
            )
        check_age(opened.receipt, max_age=self._max_age, now=self._workspace.clock())
        return opened

    def newest_two(self, *, accept: ConclusionScope | None = None) -> tuple[str, str]:
        """Return the two newest generations that open, the earlier one first.

        Args:
            accept: the scope they must say; None for proven wholes.

        Raises:
            GateClosedError: there are not two.
        """
        parts = self._parts(accept or "observed_pages_only")
        found = [
            each.receipt.scan_generation
            for each in parts
            if accept is not None
            or is_whole(each.receipt.coverage_status, each.receipt.conclusion_scope)
        ][:2]
        if len(found) < 2:
            raise GateClosedError(
                scan=self._scan.name,
                generation=None,
                reason=f"found {len(found)} generations that open as "
                f"{accept or 'a proven whole'}; expected two to compare",
            )
        return found[1], found[0]

    def _parts(self, accept: ConclusionScope) -> Iterator[PartialCollection]:
        """Yield the generations that stand and say at least `accept`, newest first."""
        for stored in Shelf(self._scan.name, workspace=self._workspace).standing():
            with suppress(GateClosedError):
                yield open_partial(stored, self._scan, workspace=self._workspace, accept=accept)

    def current(
        self, *, accept: ConclusionScope | None = None, contents: bool = False
    ) -> CurrentCollection:
        """Open what the rounds of a scan of rounds come to; see `open_current`.

        Raises:
            GateClosedError: no rounds hold together, or they do not say as much.
            TamperedError: the rows are not what the rounds come to.
        """
        opened = open_current(
            self._scan, workspace=self._workspace, accept=accept, contents=contents
        )
        check_age(opened.receipt, max_age=self._max_age, now=self._workspace.clock())
        if opened.standing.is_late:
            self._tell(f"{self._scan.name}: {opened.standing.plain_word()}")
        return opened

    def receipt(self, generation: str) -> StoredReceipt:
        """Return the receipt of one generation, signature checked.

        Raises:
            GateClosedError: it has none.
        """
        return self._workspace.receipts(self._scan.name).read(
            generation, trust=self._workspace.trust
        )

    def superseded(self, receipt_id: str, *, accept: ConclusionScope) -> PartialCollection:
        """Open what a superseded receipt said, by that receipt's id; each row is labelled so.

        Raises:
            GateClosedError: there is no such receipt, it stands, or it does not say as much.
        """
        stored = self._young_enough(self.by_id(receipt_id))
        return open_superseded(stored, self._scan, workspace=self._workspace, accept=accept)

    def generations(self) -> list[str]:
        """Return the generations under whose name a receipt is filed, oldest first."""
        return self._workspace.receipts(self._scan.name).generations()

    def accepted(self, generation: str) -> Receipt | None:
        """Return a generation's receipt if it stands, is accepted and of this scope, else None."""
        found = self._workspace.receipts(self._scan.name).look(
            generation, trust=self._workspace.trust
        )
        if isinstance(found, Untrusted) or self.is_superseded(found):
            return None
        same = found.receipt.scope_digest == scope_digest(self._scan)
        return found.receipt if found.receipt.accepted and same else None

    def newest(self) -> StoredReceipt:
        """Return the newest receipt that stands, whatever it says.

        Raises:
            GateClosedError: there is none.
        """
        stands = Shelf(self._scan.name, workspace=self._workspace).standing()
        found = next(stands, None)
        if found is None:
            reason = "no receipt; expected one: run the scan"
            raise GateClosedError(scan=self._scan.name, generation=None, reason=reason)
        return found

    def by_id(self, receipt_id: str) -> StoredReceipt:
        """Return the receipt of an id, signature checked.

        Raises:
            GateClosedError: none of this scan has it.
        """
        found = Shelf(self._scan.name, workspace=self._workspace).by_id(receipt_id)
        if found is None:
            reason = f"no receipt {receipt_id}; expected the id of one of this scan"
            raise GateClosedError(scan=self._scan.name, generation=None, reason=reason)
        return found

    def is_superseded(self, stored: StoredReceipt) -> bool:
        """Say whether the pages of a receipt were judged again since."""
        shelf = Shelf(self._scan.name, workspace=self._workspace)
        return shelf.superseded_by(stored) is not None

    def standing(self, *, at_least: Wish = "verified") -> Standing:
        """Say which generation `latest` would open, how old it is, and what came after it."""
        return self._newest(at_least)[1]

    def _young_enough(self, stored: StoredReceipt) -> StoredReceipt:
        check_age(stored.receipt, max_age=self._max_age, now=self._workspace.clock())
        return stored

    def _newest(self, at_least: Wish) -> tuple[StoredReceipt, Standing]:
        newer: list[tuple[str, str]] = []
        scope = scope_digest(self._scan)
        shelf = Shelf(self._scan.name, workspace=self._workspace)
        for stored in shelf.newest_first():
            if isinstance(stored, Untrusted):
                newer.append((stored.generation, f"has no receipt: {stored.reason}"))
                continue
            receipt = stored.receipt
            generation = receipt.scan_generation
            if shelf.superseded_by(stored) is not None:
                newer.append((generation, "was judged again by a later receipt"))
                continue
            whole = receipt.conclusion_scope in WHOLE_COLLECTION
            if (
                receipt.scope_digest == scope
                and whole
                and receipt.accepted
                and satisfies(
                    receipt.coverage_status,
                    receipt.conclusion_scope,
                    wish_status=at_least,
                    wish_scope=receipt.conclusion_scope,
                )
            ):
                return stored, Standing(
                    opened=generation,
                    read_at=observed_at(receipt),
                    now=self._workspace.clock(),
                    newer=tuple(reversed(newer)),
                    schedule=self._scan.schedule,
                )
            other = "was walked under another contract: run the scan again"
            became = what_became(receipt) if receipt.scope_digest == scope else other
            newer.append((generation, became))
        told = f"; {newer[0][0]} {newer[0][1]}" if newer else ""
        accepted = accept_level(self._scan.contract)[1]
        if self._scan.contract.mode == "sync":
            told += ". A round is changes alone: open what its rounds come to, as `current`"
        elif newer and accepted not in WHOLE_COLLECTION:
            told += f". This scan accepts {accepted}: open it as that, by name: --accept {accepted}"
        raise GateClosedError(
            scan=self._scan.name,
            generation=None,
            reason=f"no generation is {at_least} over the whole collection{told}",
        )
