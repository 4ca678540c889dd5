"""How a report says things: figures, moments and texts from outside, each in one way."""

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.vocabulary import CoverageStatus
from scan_pipeline.stages.reporting.document import Cell, Column, Digest, Fact, Told, Weight

LONGEST: Final = 400
"""Characters of a text from outside, at most; the receipt has all of them."""

DASH: Final = "-"

WEIGHTS: Final[Mapping[CoverageStatus, Weight]] = {
    "verified": "good",
    "corroborated": "fair",
    "unknown": "poor",
    "failed": "bad",
}

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that nobody sees and that move what is seen: control, format (among
them those that turn the direction of writing), unassigned, private, surrogates, line ends."""


def visible(text: str) -> str:
    """Return a text in which every character can be seen; the others are told by their number."""
    return "".join(
        f"\\u{ord(each):04x}" if unicodedata.category(each) in _UNSEEN else each for each in text
    )


def told(value: object) -> Cell:
    """Return a value from outside, shortened where it is very long; None is a dash."""
    if value is None:
        return DASH
    text = visible(plain(value))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text):,} characters)"
    return Told(text=text)


def plain(value: object) -> str:
    """Return a plain value in words; a list one after another."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list() | tuple():
            return ", ".join(map(plain, value))
        case _:
            return str(value)


def digest(value: str | None) -> Cell:
    """Return a digest; None is a dash."""
    return DASH if value is None else Digest(text=visible(value))


def brief(value: str) -> Cell:
    """Return the first part of a digest, enough to tell it from its neighbours."""
    algorithm, _, figures = visible(value).rpartition(":")
    return Digest(text=f"{algorithm}{':' if algorithm else ''}{figures[:12]}…")


def words(word: str) -> str:
    """Return a closed word as people write it."""
    return word.replace("_", " ")


def listed(each: Iterable[str]) -> str:
    """Return closed words, one after another; none of them is a dash."""
    return ", ".join(map(words, each)) or DASH


def number(value: int | None) -> str:
    """Return a number as people read it; None is a dash."""
    return DASH if value is None else f"{value:,}"


def yes_or_no(value: bool) -> str:
    """Return a truth as people say it."""
    return "yes" if value else "no"


def fact(name: str, *values: Cell | None, weight: Weight = "plain") -> Fact:
    """Return a named fact; values of None are left out."""
    return Fact(name=name, values=tuple(each for each in values if each is not None), weight=weight)


def columns(*names: str) -> tuple[Column, ...]:
    """Return columns; a name that begins with `#` is of numbers."""
    return tuple(Column(name=each.lstrip("#"), numeric=each.startswith("#")) for each in names)


def moment(at: str | None) -> str:
    """Return a moment as a receipt writes it in the way people read it, to the second, UTC."""
    if at is None:
        return DASH
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S} UTC"


def seconds(spent: float) -> str:
    """Return a length of time, given in seconds."""
    if spent < 60:
        return f"{spent:.1f} s"
    minutes, rest = divmod(round(spent), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def size(number_of_bytes: int) -> str:
    """Return a size as people read it, given in bytes."""
    if number_of_bytes < 1_000:
        return f"{number_of_bytes:,} bytes"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number_of_bytes >= factor:
            return f"{number_of_bytes / factor:,.1f} {unit}"
    return f"{number_of_bytes:,} bytes"


def flat(value: Any, at: str = "") -> Iterable[tuple[str, Any]]:
    """Yield what a JSON value says as (`path.to.it`, value); empty and null members say nothing."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from flat(inner, f"{at}.{name}" if at else str(name))
    elif isinstance(value, list | tuple) and any(isinstance(e, Mapping) for e in value):
        for index, inner in enumerate(value, start=1):
            yield from flat(inner, f"{at}.{index}")
    elif value is not None and value not in ([], ()):
        yield at, value


def missing(receipt: Receipt) -> str:
    """Say which keys are known to be missing, or why that is not known."""
    if receipt.missing_id_ranges:
        return ", ".join(receipt.missing_id_ranges)
    looked = [e for e in receipt.expectations if e.name in ("id_sequence", "manifest")]
    if not looked:
        return "not looked for by name (no id sequence or manifest is declared)"
    evaluated = any(each.result != "not_evaluated" for each in looked)
    return "none" if evaluated else "not evaluated"


def version_of(receipt: Receipt) -> str | None:
    """Return the version of the source that holds the collection still, None where nothing does."""
    return receipt.snapshot_id or receipt.change_token or receipt.high_water_mark
