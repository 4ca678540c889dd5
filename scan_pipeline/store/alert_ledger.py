"""Which alerts were sent: a table in the lake, so that nobody who shares it sends one twice.

Each channel of a scan has a sequence of rows. Before anything is sent a row claims the next place
in it, fenced as the events of a walk are: of two who want it one is refused. Then a row says how it
went. A claim that nothing followed is of a process that died between the two: after its lease the
alert is sent again, since a double is better than none.
"""

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias, get_args

import pyarrow as pa

from scan_pipeline.core.condition import Change
from scan_pipeline.core.errors import TamperedError, WriterConflictError
from scan_pipeline.core.value import record
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.tables import Table, open_table

Step: TypeAlias = Literal["claimed", "sent", "failed"]

LEASE: Final = timedelta(minutes=10)
"""How long whoever claimed an alert has for sending it."""

FIRST_WAIT: Final = timedelta(minutes=1)
"""Time before a failed alert is tried again; doubled with every failure in a row."""

LONGEST_WAIT: Final = timedelta(hours=1)

_SCHEMA: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("channel", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("step", pa.string(), nullable=False),
        pa.field("change", pa.string(), nullable=False),
        pa.field("since", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
"""One row a step; `scan_generation` is the newest night when it was taken."""


@record
class Claim:
    """A place in a channel's sequence, held for sending one alert."""

    channel: str
    seq: int
    change: Change
    since: str | None
    generation: str


@record
class Sent:
    """The last alert that a channel took."""

    change: Change
    since: str | None


@record
class _Row:
    seq: int
    step: Step
    change: Change
    since: str | None
    at: datetime


class AlertLedger:
    """The alerts of one scan.

    Args:
        lake: where the table lies.
        scan: name of the scan.
    """

    def __init__(self, lake: Lake, scan: str) -> None:
        self._lake, self._scan = lake, scan

    def last_sent(self, channel: str) -> Sent | None:
        """Return the last alert that a channel took, None where it never took one.

        Raises:
            TamperedError: the table holds words that are none of ours.
        """
        sent = [each for each in self._rows(channel) if each.step == "sent"]
        return Sent(change=sent[-1].change, since=sent[-1].since) if sent else None

    def waits_until(self, channel: str) -> datetime | None:
        """Return when the next alert of a channel may be claimed; None for at once."""
        rows = self._rows(channel)
        return _free_at(rows) if rows else None

    def claim(
        self, channel: str, *, change: Change, since: str | None, generation: str, now: datetime
    ) -> Claim | None:
        """Claim the sending of an alert; None where another holds it or it is too early to retry.

        Args:
            channel: where it goes.
            change: what it is about.
            since: the generation since which it is so.
            generation: the newest night.
            now: time in UTC.

        Raises:
            RetryError: the lake did not take the claim.
        """
        rows = self._rows(channel)
        if rows and now < _free_at(rows):
            return None
        claim = Claim(
            channel=channel,
            seq=rows[-1].seq + 1 if rows else 1,
            change=change,
            since=since,
            generation=generation,
        )
        try:
            self._add(claim, seq=claim.seq, step="claimed", now=now)
        except WriterConflictError:
            return None
        return claim

    def close(self, claim: Claim, *, sent: bool, now: datetime) -> None:
        """Write down how sending went; a place that was taken over meanwhile stays the other's."""
        try:
            self._add(claim, seq=claim.seq + 1, step="sent" if sent else "failed", now=now)
        except WriterConflictError:
            return

    def _add(self, claim: Claim, *, seq: int, step: Step, now: datetime) -> None:
        row = {
            "scan_generation": claim.generation,
            "channel": claim.channel,
            "seq": seq,
            "step": step,
            "change": claim.change,
            "since": claim.since,
            "at": now,
        }
        self._table().append(
            pa.Table.from_pylist([row], schema=_SCHEMA),
            generation=claim.generation,
            app_id=f"{self._scan}/alerts/{claim.channel}",
            version=seq,
        )

    def _rows(self, channel: str) -> list[_Row]:
        table = self._table()
        if not table.exists():
            return []
        rows = [
            _row(each)
            for generation in table.generations()
            for each in table.read(generation).to_pylist()
            if each["channel"] == channel
        ]
        return sorted(rows, key=lambda each: each.seq)

    def _table(self) -> Table:
        return open_table(self._lake, "receipts", self._scan, "alerts", _SCHEMA)


def _free_at(rows: list[_Row]) -> datetime:
    """Return when the next place of a sequence may be claimed."""
    last = rows[-1]
    if last.step == "claimed":
        return last.at + LEASE
    failures = 0
    for each in reversed(rows):
        if each.step == "sent":
            break
        failures += each.step == "failed"
    return last.at + min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT) if failures else last.at


def _row(raw: dict[str, object]) -> _Row:
    if raw["step"] not in get_args(Step) or raw["change"] not in get_args(Change):
        raise TamperedError(
            "alerts",
            f"the ledger of alerts says {raw['step']!r}, {raw['change']!r}; expected words of ours",
        )
    return _Row(**{name: raw[name] for name in _Row.__dataclass_fields__})  # pyright: ignore[reportArgumentType]
