"""Signed pins of the current table: said before a version is committed, asked before it is used.

What a commit says of itself can be copied by whoever writes the next one; a signature cannot be
made. A pin is said first: a break before the commit leaves the version before, and so the pin that
the newest one replaces holds too, and every other one that would have replaced it. An older one
holds no more, so that nobody passes a table off as newer by what was signed for it once.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from deltalake import DeltaTable

from scan_pipeline.core.current_pin import CurrentPin, pin_id, rests_on_digest
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.file_writer import NewFile
from scan_pipeline.store.held_now import pinned_evidence, pinned_table
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.pinning import pin_written, verify_pin
from scan_pipeline.store.published_table import PublishedTable

REMEDY: Final = (
    "Audit its last generation to see what was changed, then run the scan: the next round makes "
    "the table anew from the sealed rounds"
)


class CurrentPins:
    """The pins of one scan's current table.

    Args:
        scan: name of the scan.
        workspace: where they lie, and whose keys are believed.
    """

    def __init__(self, scan: str, *, workspace: Workspace) -> None:
        self._scan, self._workspace = scan, workspace
        self._notes = workspace.current_pins(scan)

    def check(
        self,
        table: PublishedTable,
        *,
        at: DeltaTable,
        rests_on: Sequence[str],
        contents: bool = False,
    ) -> None:
        """Hold a version against the pin that was signed for it.

        Args:
            table: the current table.
            at: the version.
            rests_on: ids of the receipts that its commit names.
            contents: whether its files are hashed too; their paths and sizes are always looked at.

        Raises:
            TamperedError: no pin that holds names these files and these receipts.
        """
        pin = self._found(table, at=at, rests_on=rests_on)
        if pin is None:
            raise TamperedError(
                "published",
                f"the table of {self._scan}: found files that no signed pin names which holds for "
                f"the {len(rests_on)} receipts it says it rests on; expected those that were "
                f"signed for them. {REMEDY}",
            )
        try:
            verify_pin(
                table, pin.scan_generation, pinned_table(pin.table), contents=contents, at=at
            )
        except TamperedError as error:
            raise TamperedError("published", f"{error}. {REMEDY}") from error

    def announcing(
        self,
        table: PublishedTable,
        *,
        at: DeltaTable | None,
        held: Sequence[str],
        generation: str,
        rests_on: Sequence[str],
    ) -> Callable[[Sequence[NewFile]], None]:
        """Return what signs a pin for the files of the version that follows.

        Args:
            table: the current table.
            at: the version that is replaced; None where there is no table yet.
            held: ids of the receipts that its commit names.
            generation: of the last round.
            rests_on: ids of the receipts that the rows will rest on.
        """
        before = None if at is None else self._found(table, at=at, rests_on=held)
        before = before or self._newest()

        def announce(files: Sequence[NewFile]) -> None:
            now = self._workspace.clock()
            pinned = pin_written(
                files,
                folder=table.folder,
                location=table.location,
                version=1 if at is None else at.version() + 1,
            )
            note = CurrentPin(
                pin_version=1,
                scan=self._scan,
                scan_generation=generation,
                said_at=moment(self._after_all(now)),
                rounds=len(rests_on),
                rests_on=rests_on_digest(rests_on),
                replaces=None if before is None else pin_id(before),
                table=pinned_evidence(pinned, generation=generation),
            )
            signer = signing_signer(self._workspace.project, now=now, create="never")
            self._notes.write(note, signer=signer)

        return announce

    def _newest(self) -> CurrentPin | None:
        return next(self._notes.newest_first(trust=self._workspace.trust), None)

    def _after_all(self, now: datetime) -> datetime:
        """Return a moment behind those of all pins, also where a clock was set back."""
        newest = self._newest()
        if newest is None:
            return now
        return max(now, datetime.fromisoformat(newest.said_at) + timedelta(microseconds=1))

    def _found(
        self, table: PublishedTable, *, at: DeltaTable, rests_on: Sequence[str]
    ) -> CurrentPin | None:
        """Return the pin that holds and names a version's files, by path and size, and receipts."""
        receipts, generations = rests_on_digest(rests_on), set(table.generations(at=at))
        for pin in self._holding():
            if pin.rests_on != receipts or generations - {pin.scan_generation}:
                continue
            files = {(each.path, each.size) for each in table.files(pin.scan_generation, at=at)}
            if files == {(each.path, each.size) for each in pin.table.files}:
                return pin
        return None

    def _holding(self) -> Iterator[CurrentPin]:
        """Yield the pins that hold, newest first."""
        newest: CurrentPin | None = None
        for pin in self._notes.newest_first(trust=self._workspace.trust):
            newest = newest or pin
            if pin.replaces == newest.replaces:
                yield pin
                continue
            if pin_id(pin) == newest.replaces:
                yield pin
            return
