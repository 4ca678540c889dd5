"""A body with its content coding undone, or refused where it was cut.

The decoders of httpx2 2.16 read the first member of a gzip body and drop the others without a word,
and take a body that ends in the middle for a whole one, whatever its coding. RFC 1952, section 2.2
(read 2026-11-30): a gzip file is a series of members, one after another. RFC 9110, section 8.4.1.2
(read the same day): `deflate` is the zlib format, and some send it without its frame. Any other
coding, or several, is none that was asked for and is refused by its name.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

import httpx2

from scan_pipeline.core.errors import ProtocolError

ASKED_FOR: Final = "gzip"
"""What we ask for: the one coding whose end we check."""

CHUNK: Final = 2**20
"""Most bytes that are decoded at once."""

_GZIP: Final = zlib.MAX_WBITS | 16


def decoded(response: httpx2.Response) -> Iterator[bytes]:
    """Yield a response's body, piece by piece, its content coding undone.

    Raises:
        ProtocolError: `body_unparsable`, the body is cut, followed by something else, or of a
            coding that was not asked for.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        yield from _raw(response)
    elif coding in ("gzip", "x-gzip"):
        yield from members(_raw(response))
    elif coding == "deflate":
        yield from _deflated(_raw(response))
    else:
        raise ProtocolError(
            "body_unparsable",
            f"the body comes in the content coding {coding[:40]!r}; expected {ASKED_FOR}, deflate "
            "or none",
        )


def _raw(response: httpx2.Response) -> Iterator[bytes]:
    """Yield the body as it came; an in-process transport may hand over one already read."""
    if not response.is_stream_consumed:
        yield from response.iter_raw()
    elif isinstance(response.stream, Iterable):
        yield from response.stream


def members(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of every member of a gzip body.

    Raises:
        ProtocolError: `body_unparsable`.
    """
    decoder = None
    for piece in pieces:
        left, full = piece, False
        while left or full:
            if decoder is None or decoder.eof:
                decoder = zlib.decompressobj(_GZIP)
            out = _undone(decoder, left, "gzip")
            yield out
            left = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            full = len(out) == CHUNK and not decoder.eof  # more may wait inside the decoder
    if decoder is not None and not decoder.eof:
        raise _cut("gzip")


def _deflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    decoder = None
    for piece in pieces:
        left, full = piece, False
        while left or full:
            if decoder is None:
                decoder = zlib.decompressobj(zlib.MAX_WBITS if _framed(left) else -zlib.MAX_WBITS)
            if decoder.eof:
                raise ProtocolError("body_unparsable", "something follows the deflate body's end")
            out = _undone(decoder, left, "deflate")
            yield out
            left = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            full = len(out) == CHUNK and not decoder.eof
    if decoder is not None and not decoder.eof:
        raise _cut("deflate")


def _framed(first: bytes) -> bool:
    """Say whether a body begins as a zlib stream does (RFC 1950, section 2.2: method 8)."""
    return first[0] & 0x0F == 8 and first[0] >> 4 <= 7


def _undone(decoder: "zlib._Decompress", piece: bytes, coding: str) -> bytes:
    try:
        return decoder.decompress(piece, CHUNK)
    except zlib.error as error:
        raise ProtocolError(
            "body_unparsable", f"the {coding} body does not decode: {error}"
        ) from error


def _cut(coding: str) -> ProtocolError:
    return ProtocolError(
        "body_unparsable", f"the {coding} body ends in the middle; expected its end"
    )
