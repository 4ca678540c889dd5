"""A receipt as it travels: plain JSON, and the in-toto Statement whose bytes are signed."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import Receipt

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
"""in-toto attestation framework, Statement v1 (spec/v1/statement.md, read 2026-11-30)."""


PREDICATE_TYPE: Final = "urn:scan-pipeline:collection-completeness-receipt:v1"


LATER: Final = frozenset(
    {"second_walk", "withheld", "acknowledgement", "redacted_paths", "redacts", "round"}
)
"""Members that receipts did not have from the beginning."""

_RECEIPT = TypeAdapter(Receipt)


def receipt_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a receipt, as published in docs/receipt.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": PREDICATE_TYPE,
        **_RECEIPT.json_schema(mode="serialization"),
    }


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Return the receipt as plain JSON values; members of `LATER` only where they say something.

    So receipts that were signed before there were such members keep their bytes.
    """
    told = _RECEIPT.dump_python(receipt, mode="json")
    return {name: each for name, each in told.items() if each or name not in LATER}


def statement_bytes(receipt: Receipt) -> bytes:
    """Return the in-toto Statement about the generation, as the canonical bytes that are signed.

    Its subject is `scan/generation` with the digest of the walk's chain.
    """
    return _statement(receipt, receipt_json(receipt))


def _statement(receipt: Receipt, predicate: Mapping[str, Any]) -> bytes:
    subject = {
        "name": f"{receipt.scan}/{receipt.scan_generation}",
        "digest": {"sha256": receipt.cursor_chain_digest.removeprefix("sha256:")},
    }
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [subject],
            "predicateType": PREDICATE_TYPE,
            "predicate": dict(predicate),
        }
    )


def _as_written(whole: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """Leave out the members that a receipt was written without, before there were such.

    What may be absent has a default, or it would not have parsed.
    """
    return {
        name: _as_written(each, written[name]) if _are_objects(each, written[name]) else each
        for name, each in whole.items()
        if name in written
    }


def _are_objects(*values: Any) -> bool:
    return all(isinstance(each, dict) for each in values)


def predicate_of(payload: bytes) -> dict[str, Any]:
    """Return a verified receipt as it was signed: members that came later are not in it."""
    return json.loads(payload)["predicate"]


def parse_statement(payload: bytes) -> Receipt:
    """Read a verified Statement's payload.

    Raises:
        TamperedError: the payload is not a receipt of ours, or its subject is another generation.
    """
    try:
        statement = json.loads(payload)
        receipt = _RECEIPT.validate_json(json.dumps(statement["predicate"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise TamperedError(
            "receipt", f"not a receipt of version 1: {type(error).__name__}"
        ) from error
    if _statement(receipt, _as_written(receipt_json(receipt), statement["predicate"])) != payload:
        raise TamperedError(
            "receipt",
            f"the statement around the receipt of {receipt.scan}/{receipt.scan_generation} is not "
            "the one its fields imply; expected its canonical bytes",
        )
    return receipt
