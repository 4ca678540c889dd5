"""Whose word a judgement rests on: looked up among what was signed, never taken on trust."""

from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.acknowledgement import Acknowledgement
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import ReceiptAcknowledgement
from scan_pipeline.stages.workspace import Workspace


def acknowledged_in(
    facts: Mapping[str, Any], scan: str, *, workspace: Workspace
) -> ReceiptAcknowledgement | None:
    """Return the acknowledgement that a generation's open event names; None where it names none.

    The event alone is no word of anybody: the signed note is looked up.

    Raises:
        TamperedError: no note that verifies is the one it names.
    """
    named = facts.get("acknowledgement")
    if named is None:
        return None
    generation = str(named["generation"])
    for each in workspace.acknowledgements(scan).of(generation, trust=workspace.trust):
        if each.reference.acknowledgement_id == named["id"]:
            return _of_the_receipt(each, workspace=workspace)
    raise TamperedError(
        "acknowledgement",
        f"{scan} {generation}: found no signed acknowledgement {named['id']}; expected the one "
        "that the judgement rests on",
    )


def _of_the_receipt(said: Acknowledgement, *, workspace: Workspace) -> ReceiptAcknowledgement:
    """Hold an acknowledgement against the receipt it was said of; return what is told of it."""
    stored = workspace.receipts(said.scan).read(said.scan_generation, trust=workspace.trust)
    # An erasure may have put a redacted copy in its place, which says for which receipt it stands.
    known = (stored.receipt_id, stored.receipt.redacts)
    if said.receipt_id not in known or "swing" not in stored.receipt.withheld:
        raise TamperedError(
            "acknowledgement",
            f"{said.scan} {said.scan_generation}: it was said of {said.receipt_id}; found "
            f"{stored.receipt_id}, expected that very receipt, withheld",
        )
    return said.reference
