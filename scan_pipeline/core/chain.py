"""The walk's chain: one digest that covers every event of a walk, in order.

    chain[0] = SHA-256("scan-pipeline/chain/v1" || 0x00 || digest of the open row)
    chain[n] = SHA-256(chain[n-1] || seq as 8 bytes, big-endian || cursor_in || cursor_out
                       || items || body || reported)

All parts are 32 raw bytes. What an event puts there:

| event   | cursor_in              | cursor_out        | items           | body               |
|---------|------------------------|-------------------|-----------------|--------------------|
| page    | of the cursor it sent  | of what follows   | of its records  | SHA-256 of body    |
| refused | of the cursor it sent  | as cursor_in      | `NO_ITEMS`      | SHA-256 of body    |
| close   | the last cursor_out    | as cursor_in      | `NO_ITEMS`      | `EMPTY_DIGEST`     |

`reported` is the digest of the row's facts, a JSON object whose member `kind` is the event's
word. So each cursor_in is the cursor_out before it: a refused response moves nothing.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from scan_pipeline.core.canonical import CanonicalFormError, items_digest
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.value import record

DEFINITION: Final = "scan-pipeline/chain/v1"
DIGEST_SIZE: Final = 32  # bytes
EMPTY_DIGEST: Final = sha256(b"").digest()
NO_ITEMS: Final = items_digest(())


class ChainBrokenError(EvidenceError):
    """An event does not follow on the one before it.

    Attributes:
        seq: sequence number of the event.
    """

    def __init__(self, message: str, *, seq: int) -> None:
        super().__init__(f"event {seq}: {message}")
        self.seq = seq


@record
class ChainLink:
    """What one event after `open` adds to the chain; digests of 32 bytes.

    Attributes:
        seq: number of the event in its walk, from 1; `open` is 0.
        cursor_in: digest of the cursor the request carried.
        cursor_out: digest of the cursor or end that the response named.
        items: digest of the page's records.
        body: digest of the response as sent.
        reported: digest of the row's facts.
    """

    seq: int
    cursor_in: bytes
    cursor_out: bytes
    items: bytes
    body: bytes
    reported: bytes

    @classmethod
    def refused(cls, *, seq: int, cursor: bytes, body: bytes, reported: bytes) -> "ChainLink":
        """Return the link of a response that was not a page; `cursor` is the request's digest."""
        return cls(
            seq=seq,
            cursor_in=cursor,
            cursor_out=cursor,
            items=NO_ITEMS,
            body=body,
            reported=reported,
        )

    @classmethod
    def close(cls, *, seq: int, cursor: bytes, reported: bytes) -> "ChainLink":
        """Return the link of a walk's last event; `cursor` is the last cursor_out."""
        return cls.refused(seq=seq, cursor=cursor, body=EMPTY_DIGEST, reported=reported)


def cursor_digest(token: str | None) -> bytes:
    """Return the digest of a cursor: SHA-256("token:" || token), None being the first request.

    The first request is SHA-256("none"). The prefix keeps a token that reads `none` or `end:null`
    from being taken for the first request or for an end.

    Raises:
        CanonicalFormError: the token is not Unicode text.
    """
    return sha256(b"none" if token is None else b"token:" + _utf8(token)).digest()


def checkpoint_digest(checkpoint: str) -> str:
    """Return the digest of a checkpoint, `sha256:<hex>` of SHA-256("checkpoint:" || checkpoint).

    Raises:
        CanonicalFormError: the checkpoint is not Unicode text.
    """
    return f"sha256:{sha256(b'checkpoint:' + _utf8(checkpoint)).hexdigest()}"


def end_digest(signal: str) -> bytes:
    """Return the digest of a declared end: SHA-256("end:" || signal).

    Raises:
        CanonicalFormError: the signal is not Unicode text.
    """
    return sha256(b"end:" + _utf8(signal)).digest()


def chain_start(open_digest: bytes) -> bytes:
    """Return the chain over the open row alone (32 bytes).

    Raises:
        ChainBrokenError: the digest is not 32 bytes long.
    """
    if len(open_digest) != DIGEST_SIZE:
        raise ChainBrokenError(
            f"found an open digest of {len(open_digest)} bytes; expected {DIGEST_SIZE}", seq=0
        )
    return sha256(DEFINITION.encode() + b"\x00" + open_digest).digest()


def chain_next(
    previous: bytes,
    *,
    seq: int,
    cursor_in: bytes,
    cursor_out: bytes,
    items: bytes,
    body: bytes,
    reported: bytes,
) -> bytes:
    """Return the chain after one more event (32 bytes); the parts are those of `ChainLink`.

    Raises:
        ChainBrokenError: a part is not 32 bytes long, or the number is not 1 to 2^64 - 1.
    """
    parts = (previous, cursor_in, cursor_out, items, body, reported)
    if strange := {len(part) for part in parts} - {DIGEST_SIZE}:
        raise ChainBrokenError(
            f"found digests of {sorted(strange)} bytes; expected {DIGEST_SIZE}", seq=seq
        )
    if not 1 <= seq < 2**64:
        raise ChainBrokenError("expected a number from 1 to 2^64 - 1", seq=seq)
    return sha256(previous + seq.to_bytes(8, "big") + b"".join(parts[1:])).digest()


def chain_after(previous: bytes, *, link: ChainLink) -> bytes:
    """Return the chain after one link (32 bytes).

    Raises:
        ChainBrokenError: as `chain_next`.
    """
    return chain_next(
        previous,
        seq=link.seq,
        cursor_in=link.cursor_in,
        cursor_out=link.cursor_out,
        items=link.items,
        body=link.body,
        reported=link.reported,
    )


def chain_over(open_digest: bytes, *, links: Iterable[ChainLink]) -> bytes:
    """Return the chain over a whole walk, and check that each event follows on the last.

    Raises:
        ChainBrokenError: a number or a cursor does not follow, or a digest has a wrong length.
    """
    chain, cursor = chain_start(open_digest), cursor_digest(None)
    for expected, link in enumerate(links, start=1):
        if link.seq != expected:
            raise ChainBrokenError(f"expected event {expected} here", seq=link.seq)
        if link.cursor_in != cursor:
            raise ChainBrokenError(
                f"expected cursor_in {cursor.hex()}, the cursor_out before it; "
                f"got {link.cursor_in.hex()}",
                seq=link.seq,
            )
        chain = chain_after(chain, link=link)
        cursor = link.cursor_out
    return chain


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CanonicalFormError(
            f"found a lone surrogate at position {error.start} of a cursor; expected Unicode text"
        ) from None
