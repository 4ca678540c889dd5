"""Opening and closing a point in time, as either engine has it."""

from typing import Any, Final
from urllib.parse import quote

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import (
    ProtocolError,
    ScanPipelineError,
    SnapshotExpiredError,
    StopError,
)
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.value import record
from scan_pipeline.sources.elastic.answers import check_shards
from scan_pipeline.sources.elastic.facts import ElasticsearchSource
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.responses import Answer, ResponseClass
from scan_pipeline.sources.http.transport import Call, Refused, Transport, read_json

JSON: Final = (("content-type", "application/json"),)

CLOSING: Final = (ResponseClass(status=404, means="expired"),)
"""A point in time that is not there is closed; both engines answer 404."""


@record
class PointInTime:
    """One that was opened: its first name, and how many shards stand behind it where it says so."""

    id: str
    shards: int | None


class PointsInTime:
    """Opens and closes points in time over one index.

    Args:
        facts: the search.
        transport: what carries the requests.
        closing: what carries those that close, with `CLOSING` and few retries: by then the walk is
            over, and the source ends a point in time by itself.
    """

    def __init__(
        self, facts: ElasticsearchSource, transport: Transport, *, closing: Transport
    ) -> None:
        self._facts, self._transport, self._closing = facts, transport, closing
        self._base = facts.url.rstrip("/")
        self._index = f"{self._base}/{quote(facts.index, safe=',*-_.:+')}"

    def open(self, *, refused: Refused) -> PointInTime:
        """Open one, after a refresh where the facts ask for it.

        Raises:
            ProtocolError: `answer_partial` or `reported_invalid`; besides, see `Transport.send`.
        """
        if self._facts.refresh:
            call = Call(url=f"{self._index}/_refresh", method="POST")
            self._transport.send(call, read=_read_refreshed, refused=refused)
        return self._transport.send(self._opening(), read=self._read_opened, refused=refused).value

    def close(self, name: str) -> tuple[Finding, ...]:
        """Close one, and return a note where the source does not say that it did."""
        opensearch = self._facts.engine == "opensearch"
        path = "/_search/point_in_time" if opensearch else "/_pit"
        body: dict[str, Any] = {"pit_id": [name]} if opensearch else {"id": name}
        call = Call(
            url=f"{self._base}{path}", method="DELETE", headers=JSON, content=canonical_json(body)
        )
        try:
            closed = self._closing.send(call, read=_read_closed, refused=_untold).value
        except SnapshotExpiredError:
            return ()
        except StopError:
            raise
        except ScanPipelineError as error:
            return (_left(str(error)),)
        return () if closed else (_left("the source says that it did not succeed"),)

    def _opening(self) -> Call:
        kept = ("keep_alive", self._facts.keep_alive)
        if self._facts.engine == "opensearch":
            # Its default is true, and the point in time then lacks shards without another word.
            whole = ("allow_partial_pit_creation", "false")
            return Call(
                url=f"{self._index}/_search/point_in_time", params=(kept, whole), method="POST"
            )
        return Call(url=f"{self._index}/_pit", params=(kept,), method="POST")

    def _read_opened(self, answer: Answer) -> PointInTime:
        around = read_json(answer)
        name = value_at(around, ("pit_id" if self._facts.engine == "opensearch" else "id",))
        if not isinstance(name, str) or not name:
            raise ProtocolError(
                "reported_invalid", "opening a point in time gave no id; expected its name"
            )
        told = value_at(around, ("_shards",)) is not ABSENT  # Elasticsearch tells since 8.16
        return PointInTime(id=name, shards=check_shards(around, shards=None) if told else None)


def _read_refreshed(answer: Answer) -> None:
    """Check that no shard failed; replicas that are not assigned are not counted as successful."""
    failed = value_at(read_json(answer), ("_shards", "failed"))
    if failed != 0:
        raise ProtocolError(
            "answer_partial", "the refresh did not reach all shards; expected 0 failed"
        )


def _read_closed(answer: Answer) -> bool:
    around = read_json(answer)
    if (pits := value_at(around, ("pits",))) is not ABSENT:
        return bool(pits) and all(value_at(each, ("successful",)) is True for each in pits)
    return value_at(around, ("succeeded",)) is True


def _left(told: str) -> Finding:
    return finding("held_by_source", expected="the point in time closed", found=told)


def _untold(*told: Any) -> None:
    """Leave what is refused after the walk out of its events."""
    del told
