"""What a source says of its collection beside the records of one page."""

from collections.abc import Mapping
from typing import Any, Final

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Reported
from scan_pipeline.core.source_facts import CountFacts, SourceFacts
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import HttpCountFacts

MAX_COUNT: Final = 2**63
"""Counts from here on are none: a receipt must be able to hold them exactly."""

_DIGITS: Final = 20


def reported(around: Any, headers: Mapping[str, str], facts: SourceFacts) -> Reported:
    """Read count and pin of one page.

    Raises:
        ProtocolError: `reported_invalid`, one of them has the wrong type.
    """
    counted = None if facts.count is None else count_of(around, headers, facts.count)
    pin = None if facts.snapshot is None else value_at(around, facts.snapshot.at)
    if pin is ABSENT or pin == "":
        pin = None
    if isinstance(pin, bool) or (pin is not None and not isinstance(pin, str | int)):
        raise ProtocolError("reported_invalid", "the version at snapshot.at is not a text")
    means = None if facts.count is None else facts.count.means
    return Reported(
        total=counted if means == "total" else None,
        remaining=counted if means == "remaining" else None,
        page=counted if means == "page" else None,
        pin=None if pin is None else str(pin),
        pin_is_number=isinstance(pin, int),
    )


def count_of(around: Any, headers: Mapping[str, str], facts: CountFacts) -> int | None:
    """Read a count, None where the page holds none.

    Raises:
        ProtocolError: `reported_invalid`, it is not a number of records.
    """
    if isinstance(facts, HttpCountFacts) and facts.header is not None:
        text = headers.get(facts.header)
        if text is None:
            return None
        if not text.isascii() or not text.strip().isdigit():
            raise _not_a_number(f"header {facts.header}")
        return _bounded(int(text[:_DIGITS]), f"header {facts.header}", cut=len(text) > _DIGITS)
    value = value_at(around, facts.at)
    if value is ABSENT or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _not_a_number(".".join(facts.at))
    return _bounded(value, ".".join(facts.at))


def _bounded(number: int, where: str, *, cut: bool = False) -> int:
    """Return a count that a collection can have; no table holds 2^63 rows."""
    if cut or number >= MAX_COUNT:
        raise _not_a_number(where)
    return number


def _not_a_number(where: str) -> ProtocolError:
    return ProtocolError("reported_invalid", f"the count at {where} is not a number of records")
