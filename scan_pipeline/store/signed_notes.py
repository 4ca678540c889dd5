"""Signed notes beside a scan's receipts: amendments, holds, and so on; write-once files.

    receipts/<scan>/<kind>/<generation>_<moment>.<kind>.json

A note is an in-toto Statement in a DSSE envelope, as a receipt is. What does not verify vouches for
nothing, and `unreadable` tells of it. The moment in the name is the note's own, so that a copy of
what was said before does not become what was said last under a later name.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, TypeVar

from securesystemslib.signer import (  # re-exported there without `__all__`
    Signer,  # pyright: ignore[reportPrivateImportUsage]
)

from scan_pipeline.core.acknowledgement import PREDICATE_TYPE as ACKNOWLEDGEMENT
from scan_pipeline.core.acknowledgement import Acknowledgement
from scan_pipeline.core.amendment import PREDICATE_TYPE as AMENDMENT
from scan_pipeline.core.amendment import Amendment, amended_words
from scan_pipeline.core.current_pin import PREDICATE_TYPE as CURRENT_PIN
from scan_pipeline.core.current_pin import CurrentPin
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.hold import PREDICATE_TYPE as HOLD
from scan_pipeline.core.hold import Hold
from scan_pipeline.core.notes import note_bytes, parse_note
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.store.lake import Lake, check_generation, check_name
from scan_pipeline.store.trust import Trust, sign

AMENDMENTS: Final = "amendments"
HOLDS: Final = "holds"
ACKNOWLEDGEMENTS: Final = "acknowledgements"
CURRENT_PINS: Final = "current_pins"

Note = TypeVar("Note", Amendment, Hold, Acknowledgement, CurrentPin)

_NAME: Final = re.compile(r"\d{8}T\d{6}Z(\.\d+)?_\d{8}T\d{12}Z", re.ASCII)
"""Generation and moment; whatever else lies in the folder is no note."""


class NoteStore(Generic[Note]):
    """The notes of one kind beside the receipts of one scan.

    Args:
        lake: where they lie.
        scan: name of the scan.
        kind: folder and file ending.
        of: what a note is.
        predicate_type: of its statement.
    """

    def __init__(
        self,
        lake: Lake,
        scan: str,
        *,
        kind: str,
        of: type[Note],
        predicate_type: str,
    ) -> None:
        self._lake, self._scan, self._suffix = lake, check_name(scan), f".{kind}.json"
        self._folder = f"{lake.root}/receipts/{scan}/{kind}"
        self._of, self._type = of, predicate_type

    def write(self, note: Note, *, signer: Signer) -> Note:
        """Write a note down, behind those that are there, and return it as it was written.

        Where a clock was set back since the last note, its moment is the microsecond that follows
        that one: what was said last is what holds.

        Raises:
            WriterConflictError: another one of this generation was written at the same time.
        """
        generation, when = check_generation(note.scan_generation), _said_at(note)
        said = [_moment_in(name) for name in self._names() if _of(name) == generation]
        if said:
            last = datetime.strptime(max(said).removesuffix(self._suffix), "%Y%m%dT%H%M%S%f%z")
            when = max(when, last + timedelta(microseconds=1))
        if when != _said_at(note):
            note = replace(note, **{_moment_of(note): f"{when:%Y-%m-%dT%H:%M:%S.%fZ}"})
        envelope = sign(note_bytes(note, predicate_type=self._type), signer=signer)
        self._lake.write_once(f"{self._folder}/{self._name(note)}", envelope)
        return note

    def generations(self) -> tuple[str, ...]:
        """Return the generations that have notes, verified or not."""
        return tuple(dict.fromkeys(map(_of, self._names())))

    def of(self, generation: str, *, trust: Trust) -> tuple[Note, ...]:
        """Return the notes of a generation that verify, oldest first."""
        return self._read(generation, trust=trust)[0]

    def newest_first(self, *, trust: Trust) -> Iterator[Note]:
        """Yield the notes of all generations that verify, the last one said first."""
        for name in sorted(self._names(), key=_moment_in, reverse=True):
            if (note := self._note(name, trust=trust)) is not None:
                yield note

    def unreadable(self, generation: str, *, trust: Trust) -> tuple[str, ...]:
        """Return the files that should be notes of a generation and do not verify."""
        return self._read(generation, trust=trust)[1]

    def _read(self, generation: str, *, trust: Trust) -> tuple[tuple[Note, ...], tuple[str, ...]]:
        read, wrong = list[Note](), list[str]()
        for name in self._names():
            if _of(name) != generation:
                continue
            if (note := self._note(name, trust=trust)) is None:
                wrong.append(name)
            else:
                read.append(note)
        return tuple(read), tuple(wrong)

    def _note(self, name: str, *, trust: Trust) -> Note | None:
        """Return what a file says, None where it does not verify or is another's."""
        try:
            envelope = self._lake.read_bytes(f"{self._folder}/{name}")
            payload = trust.verify(envelope).payload
            note = parse_note(payload, of=self._of, predicate_type=self._type)
        except EvidenceError:
            return None
        return note if (note.scan, self._name(note)) == (self._scan, name) else None

    def _name(self, note: Note) -> str:
        return f"{note.scan_generation}_{_said_at(note):%Y%m%dT%H%M%S%fZ}{self._suffix}"

    def _names(self) -> list[str]:
        names = self._lake.list_names(self._folder)
        return [name for name in names if _NAME.fullmatch(name.removesuffix(self._suffix))]


def _moment_of(note: Amendment | Hold | Acknowledgement | CurrentPin) -> str:
    return "made_at" if isinstance(note, Amendment) else "said_at"


def _said_at(note: Amendment | Hold | Acknowledgement | CurrentPin) -> datetime:
    return datetime.fromisoformat(getattr(note, _moment_of(note))).astimezone(UTC)


def _of(name: str) -> str:
    return name.partition("_")[0]


def _moment_in(name: str) -> str:
    return name.partition("_")[2]


def amendment_store(lake: Lake, scan: str) -> NoteStore[Amendment]:
    """Return the amendments of a scan."""
    return NoteStore(lake, scan, kind=AMENDMENTS, of=Amendment, predicate_type=AMENDMENT)


def taken_out_since(receipt: Receipt, *, lake: Lake, trust: Trust) -> tuple[str, ...]:
    """Return in words what was dropped or erased of a receipt's rows since it was signed."""
    notes, pages = amendment_store(lake, receipt.scan), receipt.evidence.get("pages")
    own = receipt.scan_generation
    holding = dict.fromkeys((own if pages is None else pages.generation, own))
    return amended_words(each for name in holding for each in notes.of(name, trust=trust))


def hold_store(lake: Lake, scan: str) -> NoteStore[Hold]:
    """Return the holds of a scan."""
    return NoteStore(lake, scan, kind=HOLDS, of=Hold, predicate_type=HOLD)


def acknowledgement_store(lake: Lake, scan: str) -> NoteStore[Acknowledgement]:
    """Return the acknowledgements of a scan's withheld receipts."""
    return NoteStore(
        lake, scan, kind=ACKNOWLEDGEMENTS, of=Acknowledgement, predicate_type=ACKNOWLEDGEMENT
    )


def current_pin_store(lake: Lake, scan: str) -> NoteStore[CurrentPin]:
    """Return the pins of the versions of a scan's current table."""
    return NoteStore(lake, scan, kind=CURRENT_PINS, of=CurrentPin, predicate_type=CURRENT_PIN)
