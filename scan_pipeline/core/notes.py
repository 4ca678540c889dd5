"""Notes beside receipts as they are signed: in-toto Statements about one generation."""

import json
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from scan_pipeline.core.canonical import canonical_json, digest_of
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt_statement import STATEMENT_TYPE
from scan_pipeline.core.value import adapter


class Noted(Protocol):
    """A value that speaks of one generation."""

    @property
    def scan(self) -> str:
        """Name of the scan."""
        ...

    @property
    def scan_generation(self) -> str:
        """The generation it speaks of."""
        ...


N = TypeVar("N", bound=Noted)


def note_bytes(note: Noted, *, predicate_type: str) -> bytes:
    """Return a note as the canonical bytes that are signed."""
    predicate: dict[str, Any] = adapter(type(note)).dump_python(note, mode="json")
    name = f"{note.scan}/{note.scan_generation}"
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": digest_of(predicate).hex()}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )


def parse_note(payload: bytes, *, of: type[N], predicate_type: str) -> N:
    """Read a verified payload.

    Raises:
        TamperedError: it is no such note, e.g. a receipt under another name.
    """
    what = of.__name__.lower()
    try:
        statement = json.loads(payload)
        note: N = adapter(of).validate_json(json.dumps(statement["predicate"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise TamperedError(what, f"found no {what}: {type(error).__name__}") from error
    if note_bytes(note, predicate_type=predicate_type) != payload:
        raise TamperedError(what, f"the statement around the {what} is not the one it implies")
    return note
