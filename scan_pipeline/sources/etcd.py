"""The `etcd` protocol: ranges of keys at one revision, over the JSON gateway of etcd v3.

From the documentation of etcd (etcd.io/docs/v3.6/dev-guide/api_grpc_gateway and
/docs/v3.6/learning/api; the comments of api/etcdserverpb/rpc.proto; all read 2026-11-30):

- Every request that writes makes a revision. `revision` in a request is the point in time it
  reads, and one that was compacted answers `ErrCompacted`. `header.revision` is the newest
  revision when the answer was made: the first answer's is the pin, a later one's is not.
- `count` counts the keys of the range that was asked for, so what remains from its first key on;
  `limit` does not touch it. `more` says whether keys of the range were left out.
- Keys come in ascending order. Asking for that order makes the server fetch the whole range for
  each page (client/v3/op.go, `WithSort`), so it is checked and not asked for.
- A range_end that is the prefix plus one bit ends the range of a prefix; key and range_end of one
  zero byte are all keys.
- Members that hold their type's default are left out (protobuf.dev/programming-guides/json, read
  2026-11-30): an absent `more` says false. Because of that, `count` has to confirm the end.
"""

from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from scan_pipeline.core.canonical import canonical_json, digest_of, leaf_hashes
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.page import (
    Continuation,
    End,
    Next,
    Opening,
    Page,
    Position,
    Refusal,
    Reported,
)
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.source_facts import CountFacts, SnapshotFacts, SourceFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import LeafEncoding
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.etcd_pairs import Encoding, bytes_at, in_base64, pair_record, whole_at
from scan_pipeline.sources.http.envelope import parse_body
from scan_pipeline.sources.http.network import NetworkFacts
from scan_pipeline.sources.http.responses import Answer, BodyMatch, ResponseClass
from scan_pipeline.sources.http.signing_in import open_transport
from scan_pipeline.sources.http.transport import Call
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "etcd/1"

RANGE: Final = "/v3/kv/range"


def _says(message: str) -> BodyMatch:
    return BodyMatch(at=("message",), equals=f"etcdserver: {message}")


RESPONSES: Final = (
    # A revision of the future was given out before the cluster was rolled back.
    ResponseClass(
        status=400, body=_says("mvcc: required revision has been compacted"), means="expired"
    ),
    ResponseClass(
        status=400, body=_says("mvcc: required revision is a future revision"), means="expired"
    ),
    ResponseClass(status=400, body=_says("user name is empty"), means="refused"),
)
"""Errors of etcd that HTTP's status alone does not tell (api/v3rpc/rpctypes/error.go)."""


@record
class EtcdSource(SourceFacts):
    """The facts of a range of keys in etcd.

    Attributes:
        url: a client address of the cluster, without a path.
        prefix: what the keys begin with; empty for all keys.
        limit: keys of one page.
        keys: what the bytes of a key are.
        values: what the bytes of a value are.
        auth: how to prove who we are; etcd wants its token bare in the header `authorization`.
        responses: what statuses mean here, looked up before etcd's own.
        network: how the network is reached.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("limit", "auth")
    QUERY: ClassVar[tuple[str, ...]] = ("url", "prefix")
    leaf_encoding: ClassVar[LeafEncoding] = "canonical-json/v1"
    positions_are_ours: ClassVar[bool] = True

    protocol: Literal["etcd"]
    url: str
    prefix: str = ""
    limit: PositiveInt = 1_000
    keys: Literal["text", "base64"] = "text"
    values: Encoding = "text"
    auth: Auth | None = None
    network: NetworkFacts | None = None
    count: CountFacts | None = CountFacts(
        at=("count",), means="remaining", exactness="exact", basis="provider_documented"
    )
    snapshot: SnapshotFacts | None = SnapshotFacts(
        at=("header", "revision"), send_as="revision", basis="provider_documented"
    )
    responses: tuple[ResponseClass, ...] = ()

    def __post_init__(self) -> None:
        if self.high_water_mark is not None or self.continuation != "repeatable":
            raise ContractError(
                "found high_water_mark or another continuation than repeatable; expected neither: "
                "etcd reads one revision, as often as asked"
            )

    @property
    def tool(self) -> str:
        """Return what is called."""
        return f"POST {self.url.rstrip('/')}{RANGE}"


class Etcd(Source):
    """Walks an `EtcdSource`; a position's token is the next page's first key, in base64."""

    def __init__(self, facts: EtcdSource, surroundings: Surroundings) -> None:
        self._facts = facts
        self.adapter = AdapterRevision(name="etcd", revision=REVISION)
        prefix = facts.prefix.encode()
        self._first, self._end = (prefix, _plus_one_bit(prefix)) if prefix else (b"\0", b"\0")
        auth, environ = facts.auth, surroundings.environ
        self._who = lambda: auth.principal_bytes(environ) if auth else None
        self._transport = open_transport(
            facts.url,
            surroundings,
            auth=facts.auth,
            responses=(*facts.responses, *RESPONSES),
            network=facts.network,
        )

    @property
    def facts(self) -> EtcdSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._transport.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within what is left of `limits.seconds`; see `Source.allow`."""
        self._transport.allowance.grant(limit, used=used)

    def principal(self) -> bytes | None:
        """Return what the scan's credential says of who asks."""
        return self._who()

    def opening(self) -> Opening:
        """Return nothing: the gateway has no way to ask who we are."""
        return Opening()

    def closing(self, position: Position) -> Opening:
        """Return nothing, as before."""
        del position
        return Opening()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return the keys of the range from the position's key on; see `Source.fetch`."""

        def tell(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
            refused(
                Refusal(position=position, status=status, reason=reason, body_digest=digest, at=at)
            )

        sent = self._transport.send(
            self._call(position), read=lambda answer: self._read(answer, position), refused=tell
        )
        answer = sent.value
        return Page(
            position=position,
            fingerprint=self._fingerprint(),
            continuation=answer.continuation,
            body=answer.body,
            records=len(answer.lines),
            leaf_hashes=leaf_hashes(answer.lines),
            reported=Reported(remaining=answer.remaining, pin=answer.pin),
            attempts=sent.attempts,
            requested_at=sent.requested_at,
            received_at=sent.received_at,
        )

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        return self._lines(parse_body(body))

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _call(self, position: Position) -> Call:
        asked = {
            "key": in_base64(self._from(position)),
            "range_end": in_base64(self._end),
            "limit": str(self._facts.limit),
        }
        if position.pin is not None:
            asked["revision"] = position.pin.partition("@")[0]
        return Call(
            url=f"{self._facts.url.rstrip('/')}{RANGE}",
            method="POST",
            headers=(("content-type", "application/json"),),
            content=canonical_json(asked),
        )

    def _read(self, answer: Answer, position: Position) -> "_Range":
        around = parse_body(answer.body)
        lines = self._lines(around)
        newest = _newest(around)
        _check_moment(newest, position)
        self._check_pairs(around.get("kvs", []), position, position.pin or newest)
        count = whole_at(around, "count")
        return _Range(
            body=answer.body,
            lines=lines,
            continuation=_continuation(around, returned=len(lines), count=count),
            remaining=count - len(lines),
            pin=newest if position.pin is None else None,
        )

    def _from(self, position: Position) -> bytes:
        return self._first if position.token is None else b64decode(position.token)

    def _check_pairs(self, pairs: list[Any], position: Position, pin: str) -> None:
        """Hold a page against what was asked for: its range, order and moment."""
        revision = int(pin.partition("@")[0])
        last = self._from(position)[:-1] if position.token is not None else b""
        for number, pair in enumerate(pairs):
            key = bytes_at(pair, "key")
            if key <= last or not key.startswith(self._facts.prefix.encode()):
                raise ProtocolError(
                    "order_broken", f"key {number} of the page is not one that follows in the range"
                )
            if whole_at(pair, "mod_revision") > revision:
                raise ProtocolError(
                    "snapshot_changed", f"key {number} was written after revision {revision}"
                )
            last = key

    def _lines(self, around: Any) -> list[bytes]:
        pairs = around.get("kvs", []) if isinstance(around, dict) else None
        if not isinstance(pairs, list) or not isinstance(around.get("header"), dict):
            raise ProtocolError(
                "records_missing", "the answer has no header, or no list at kvs; expected both"
            )
        facts = self._facts
        return [pair_record(pair, keys=facts.keys, values=facts.values) for pair in pairs]

    def _fingerprint(self) -> bytes:
        """Digest what must be equal on every request: all but key, revision and limit."""
        facts = self._facts
        return digest_of(
            {
                "method": "POST",
                "url": facts.url,
                "prefix": facts.prefix,
                "auth": None if facts.auth is None else facts.auth.scheme,
            }
        )


@record
class _Range:
    """An answer taken apart; `pin` only where the request named none."""

    body: bytes
    lines: list[bytes]
    continuation: Continuation
    remaining: int
    pin: str | None


def _continuation(around: Any, *, returned: int, count: int) -> Continuation:
    """Return the key after the last one, or the end where `more` and `count` say so alike."""
    more = around.get("more", False)
    if not isinstance(more, bool):
        raise ProtocolError("continuation_invalid", "more is neither true nor false")
    if (count > returned) != more or (more and not returned) or count < returned:
        raise ProtocolError(
            "end_signals_disagree",
            f"count says that {count} keys remain, {returned} came, and more is {more}",
        )
    if more:
        return Next(token=in_base64(bytes_at(around["kvs"][-1], "key") + b"\0"))
    return End(signal="false")


def _newest(around: Any) -> str:
    """Return an answer's revision and cluster as `revision@cluster`, as etcdctl writes them.

    Revisions of two clusters do not compare, and a restored one has an id of its own.
    """
    header = around["header"]
    revision, cluster = whole_at(header, "revision"), whole_at(header, "cluster_id")
    if not revision or not cluster:
        raise ProtocolError("reported_invalid", "the answer names no revision or no cluster")
    return f"{revision}@{cluster:x}"


def _check_moment(newest: str, position: Position) -> None:
    """Hold the revision an answer was made at against the pin, which it cannot lie before."""
    if position.pin is None:
        return
    (pinned, _, of), (now, _, by) = position.pin.partition("@"), newest.partition("@")
    if of != by or int(now) < int(pinned):
        raise ProtocolError(
            "snapshot_changed", f"the answer is of {newest}; expected {pinned} or later @{of}"
        )


def _plus_one_bit(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a prefix; UTF-8 never ends in 0xff."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


PROTOCOL: Final = Protocol(facts=EtcdSource, open=Etcd)
