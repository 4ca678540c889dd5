"""What an audit found: check by check, as deep as it could look."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar

import polars as pl
import pyarrow as pa
from deltalake.exceptions import DeltaError

from scan_pipeline.core.errors import ContractError, ErasedError, ScanPipelineError
from scan_pipeline.core.value import record

T = TypeVar("T")

Level = Literal["bodies", "records", "ledger", "receipt"]
"""How deep an audit could look.

`bodies`: everything, page bodies included. `records`: staged records and events; the bodies cannot
be opened. `ledger`: events and, where they open, bodies; the records are gone, and with them every
figure that counts keys. `receipt`: its signature alone.
"""

SHOWN: Final = 200
"""Characters of a figure that are shown whole."""

UNREADABLE: Final = (
    ScanPipelineError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    DeltaError,
    pa.ArrowException,
    pl.exceptions.PolarsError,
)
"""What reading may raise where somebody altered files, logs or facts."""


@record
class AuditCheck:
    """One thing that was computed again.

    Attributes:
        name: what: a field of the receipt (`merkle.root`), or e.g. `chain`, `files of records`.
        agrees: None where it could not be computed at the level that is left.
        expected: what the receipt says.
        found: what was computed, or why it could not be.
    """

    name: str
    agrees: bool | None
    expected: str
    found: str


@record
class AuditReport:
    """What an audit came to; `agrees` only where nothing disagrees.

    Attributes:
        scan: name of the scan.
        generation: which one.
        receipt_id: of its receipt, None where none could be read.
        level: how deep it could look.
        checks: each thing that was computed again.
        coverage_status: what the receipt says.
        amendments: what was dropped or redacted since, in words, oldest first.
    """

    scan: str
    generation: str
    receipt_id: str | None
    level: Level
    checks: tuple[AuditCheck, ...]
    coverage_status: str | None = None
    amendments: tuple[str, ...] = ()

    def word(self) -> str:
        """Return the status and what was taken out: `verified, 1 record redacted on DATE`."""
        return ", ".join([self.coverage_status or "no receipt", *self.amendments])

    @property
    def agrees(self) -> bool:
        """Whether nothing disagrees."""
        return all(each.agrees is not False for each in self.checks)

    @property
    def disagreements(self) -> tuple[AuditCheck, ...]:
        """What disagrees."""
        return tuple(each for each in self.checks if each.agrees is False)

    @property
    def not_computed(self) -> tuple[AuditCheck, ...]:
        """What could not be computed at the level that is left."""
        return tuple(each for each in self.checks if each.agrees is None)


class Checks:
    """Collects the checks of one audit."""

    def __init__(self) -> None:
        self.made: list[AuditCheck] = []

    def compare(self, name: str, expected: Any, found: Any) -> None:
        """Note whether two figures are equal."""
        self._note(name, expected == found, expected, found)

    def compare_each(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Note of each figure whether it is equal."""
        for name in expected.keys() | found.keys():
            if name not in found or name not in expected:
                self.disagree(name, f"a figure that only one side has; {sorted(found)[:5]} ...")
        for name, value in expected.items():
            if name in found:
                self.compare(name, value, found[name])

    def agree(self, name: str, value: Any) -> None:
        """Note what agrees."""
        self._note(name, True, value, value)

    def disagree(self, name: str, found: Any, *, expected: Any = "as sealed") -> None:
        """Note what disagrees."""
        self._note(name, False, expected, found)

    def leave(self, name: str, why: Any, *, expected: Any = "as sealed") -> None:
        """Note what cannot be computed, and why."""
        self._note(name, None, expected, why)

    def guard(self, name: str, look: Callable[[], T]) -> T | None:
        """Look, and turn what cannot be read as it was sealed into a disagreement.

        What is missing around the evidence (a key, a module, a manifest) is no disagreement.
        """
        try:
            return look()
        except (ContractError, ErasedError) as error:
            self.leave(name, error)
        except UNREADABLE as error:
            told = str(error) if isinstance(error, ScanPipelineError) else repr(error)
            self.disagree(name, told)
        return None

    def _note(self, name: str, agrees: bool | None, expected: Any, found: Any) -> None:
        self.made.append(
            AuditCheck(name=name, agrees=agrees, expected=_short(expected), found=_short(found))
        )


def _short(value: Any) -> str:
    text = _words(value)
    if len(text) <= SHOWN:
        return text
    return f"{text[: SHOWN - 50]}... ({sha256(text.encode()).hexdigest()[:12]})"


def _words(value: Any) -> str:
    """Return a figure as people read it; nothing of it is Python's own way of writing."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{name}: {_words(inner)}" for name, inner in value.items()) or "none"
        case list() | tuple() | set() | frozenset():
            return ", ".join(map(_words, value)) or "none"
        case _:
            return str(value)
