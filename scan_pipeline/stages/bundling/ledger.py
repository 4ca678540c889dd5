"""The ledger of a walk as text: every event without its body and its tokens.

The chain covers digests alone, so that whoever has this file can link it again from nothing.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.core.vocabulary import EventKind
from scan_pipeline.stages.bundling.manifest import Hex32
from scan_pipeline.store.events import Event

_DIGESTS: Final = (
    "facts_digest",
    "cursor_in_digest",
    "cursor_out_digest",
    "items_digest",
    "body_digest",
    "chain",
)
_MOMENTS: Final = ("requested_at", "received_at")


@record
class LedgerLine:
    """One event as a line of the ledger; digests in hex, moments in ISO 8601."""

    seq: int
    event: EventKind
    page: int | None
    cursor_in_digest: Hex32
    cursor_out_digest: Hex32
    end_signal: str | None
    returned: int | None
    facts: dict[str, Any]
    facts_digest: Hex32
    items_digest: Hex32
    body_digest: Hex32
    body_bytes: int | None
    attempts: int | None
    requested_at: str | None
    received_at: str
    chain: Hex32


def ledger_text(events: Iterable[Event]) -> bytes:
    """Return events as canonical JSON, one a line."""
    return b"".join(canonical_json(_line(event)) + b"\n" for event in events)


def parse_ledger(text: bytes) -> list[Event]:
    """Return the events of a ledger.

    Raises:
        TamperedError: a line is no event.
    """
    return list(_events(text))


def _line(event: Event) -> dict[str, Any]:
    told = {name: getattr(event, name) for name in LedgerLine.__dataclass_fields__}
    for name in _DIGESTS:
        told[name] = told[name].hex()
    for name in _MOMENTS:
        told[name] = told[name] and told[name].isoformat()
    return told


def _events(text: bytes) -> Iterator[Event]:
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            exact: Any = parse_exact(line)  # refuses a member named twice, and keeps numbers exact
            told: LedgerLine = adapter(LedgerLine).validate_json(line)
            kept: dict[str, Any] = {**told.__dict__, "facts": exact["facts"]}
            for name in _DIGESTS:
                kept[name] = bytes.fromhex(kept[name])
            for name in _MOMENTS:
                kept[name] = kept[name] and datetime.fromisoformat(kept[name])
        except (ValidationError, CanonicalFormError, ValueError) as error:
            raise TamperedError("ledger", f"line {number} of the ledger is no event") from error
        yield Event(**kept)
