"""Tickets of a help desk: rows are arrays, asked for after an id, as of a version."""

from typing import ClassVar

from scan_pipeline.adapters import (
    Answered,
    CountFacts,
    End,
    HttpAdapter,
    HttpAdapterFacts,
    Next,
    Position,
    PositiveInt,
    ProtocolError,
    SnapshotFacts,
    record,
)


@record
class TicketFacts(HttpAdapterFacts):
    """What a scan file may say of the desk; the help desk documents the rest."""

    positions_are_ours: ClassVar[bool] = True

    page_size: PositiveInt = 100
    count: CountFacts | None = CountFacts(at=("left",), means="remaining", exactness="exact")
    snapshot: SnapshotFacts | None = SnapshotFacts(at=("as_of",), send_as="as_of")


class Tickets(HttpAdapter[TicketFacts]):
    """Walks the desk; a token is the last id."""

    FACTS = TicketFacts
    REVISION = "tickets/1"

    def ask(self, position: Position) -> Answered:
        """Ask for the rows after an id."""
        asked = {"after": int(position.token or 0), "limit": self.facts.page_size}
        if position.pin is not None:
            asked["as_of"] = position.pin
        match self.post_json(f"{self.facts.url}/search", asked):
            case {"columns": list(names), "rows": list(rows), "left": int(left), "as_of": str(pin)}:
                pass
            case _:
                raise ProtocolError("records_missing", "expected columns, rows, left and as_of")
        if any(len(row) != len(names) for row in rows) or (left and not rows):
            raise ProtocolError("end_signals_disagree", "the rows do not fit columns and left")
        records = [dict(zip(names, row, strict=True)) for row in rows]
        follows = Next(token=str(records[-1]["id"])) if left else End(signal="left:0")
        return Answered(records=records, continuation=follows, remaining=left, pin=pin)
