"""A body with its content coding undone, or refused where it was cut.

The decoders of httpx2 2.16 read the first member of a gzip body and drop the others without a word,
and take a body that ends in the middle for a whole one. RFC 1952, section 2.2 (read 2026-11-30): a
gzip file is a series of members, one after another.
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
        ProtocolError: `body_unparsable`, a gzip body is cut or followed by something else.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if response.is_stream_consumed:  # an in-process transport may hand over a body already read
        yield response.content
    elif coding in ("gzip", "x-gzip"):
        yield from members(response.iter_raw())
    else:
        yield from response.iter_bytes()


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
            try:
                out = decoder.decompress(left, CHUNK)
            except zlib.error as error:
                raise ProtocolError(
                    "body_unparsable", f"the gzip body does not decode: {error}"
                ) from error
            yield out
            left = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            full = len(out) == CHUNK and not decoder.eof  # more may wait inside the decoder
    if decoder is not None and not decoder.eof:
        raise ProtocolError("body_unparsable", "the gzip body ends in the middle; expected its end")
