"""Sealed cells open only as the cell that they were, and only with their key."""

import os
import struct
from collections.abc import Callable

import pytest
import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.errors import ConfigurationError, NarrowError, TamperedError
from scan_pipeline.store.keys import DataKey
from scan_pipeline.store.sealing import Sealer

KEY = DataKey(key_id="ce6cd57a73c8d0e1", key=bytes(range(32)))
OTHER = DataKey(key_id="00" * 8, key=bytes(32))
CONTEXT = b"customers/20261130T020000Z/0/1/body"
BODY = b'{"items":[' + b",".join(b'{"customer_id":"customer-%d"}' % n for n in range(500)) + b"]}"

SEALED = bytes.fromhex(
    "01ce6cd57a73c8d0e16465666768696a6b6c6d6e6f481bde6679e9569e32197d81ae00078e60f85d57f6559"
    "54bcdd1d7ae0affbf03d249ad978f"
)
"""`{"items":[]}` under KEY and CONTEXT, nonce 100..111: made with cryptography's Cipher(AES, GCM),
apart from the code under test and from the class that it uses."""


def by_hand(content: bytes, *, context: bytes = CONTEXT, key: DataKey = KEY) -> bytes:
    header, nonce = b"\x01" + bytes.fromhex(key.key_id), bytes(12)
    return header + nonce + AESGCM(key.key).encrypt(nonce, content, header + context)


def test_the_format_is_that_of_the_vector() -> None:
    sealer = Sealer(KEY, random=lambda size: bytes(range(100, 100 + size)))

    assert sealer.seal(b'{"items":[]}', context=CONTEXT, compress=False) == SEALED
    assert sealer.open(SEALED, context=CONTEXT) == b'{"items":[]}'


@given(plain=st.binary(max_size=2000), context=st.binary(max_size=60), compress=st.booleans())
def test_what_was_sealed_is_what_opens(plain: bytes, context: bytes, compress: bool) -> None:
    sealer = Sealer(KEY)
    sealed = sealer.seal(plain, context=context, compress=compress)

    assert sealer.open(sealed, context=context) == plain
    assert len(sealed) <= len(plain) + 46


def test_bodies_get_smaller_and_tokens_keep_their_length() -> None:
    sealer = Sealer(KEY)

    assert len(sealer.seal(BODY, context=CONTEXT, compress=True)) < len(BODY) / 3
    assert len(sealer.seal(BODY, context=CONTEXT, compress=False)) == len(BODY) + 46


def test_what_does_not_compress_is_stored() -> None:
    noise = os.urandom(5000)

    assert len(Sealer(KEY).seal(noise, context=CONTEXT, compress=True)) == len(noise) + 46


def test_nothing_of_the_plain_bytes_shows_and_no_two_are_equal() -> None:
    sealer = Sealer(KEY)
    one, two = (sealer.seal(b"c_opaque_cursor", context=CONTEXT, compress=False) for _ in range(2))

    assert b"opaque" not in one
    assert one[9:] != two[9:]


@given(at=st.integers(min_value=0, max_value=len(SEALED) - 1), bit=st.integers(0, 7))
def test_no_bit_can_be_changed(at: int, bit: int) -> None:
    """A changed key id names a key that is not there; every other change is tampering."""
    edited = bytearray(SEALED)
    edited[at] ^= 1 << bit

    with pytest.raises(ConfigurationError if 1 <= at < 9 else TamperedError):
        Sealer(KEY).open(bytes(edited), context=CONTEXT)


@given(length=st.integers(min_value=0, max_value=len(SEALED) - 1))
def test_a_cut_cell_does_not_open(length: int) -> None:
    with pytest.raises(TamperedError) as refused:
        Sealer(KEY).open(SEALED[:length], context=CONTEXT)
    assert refused.value.what == "body"


@pytest.mark.parametrize(
    "context",
    [
        b"customers/20261130T020000Z/0/2/body",
        b"customers/20261130T020000Z.2/0/1/body",
        b"customers/20261130T020000Z/0/1/continuation",
        b"",
    ],
)
def test_a_cell_moved_elsewhere_does_not_open(context: bytes) -> None:
    with pytest.raises(TamperedError, match="the key does not confirm"):
        Sealer(KEY).open(SEALED, context=context)


def test_an_older_key_opens_and_the_newest_seals() -> None:
    rotated = Sealer(DataKey(key_id=OTHER.key_id, key=OTHER.key, older=(KEY,)))

    assert rotated.open(SEALED, context=CONTEXT) == b'{"items":[]}'
    assert rotated.seal(b"", context=CONTEXT, compress=False)[1:9] == bytes(8)


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"ce6cd57a73c8d0e1; expected one of 0000"):
        Sealer(OTHER).open(SEALED, context=CONTEXT)


def test_an_id_bent_to_another_key_on_the_ring_does_not_open() -> None:
    both = Sealer(DataKey(key_id=KEY.key_id, key=KEY.key, older=(OTHER,)))
    bent = SEALED[:1] + bytes.fromhex(OTHER.key_id) + SEALED[9:]

    with pytest.raises(TamperedError):
        both.open(bent, context=CONTEXT)


def _content(encoding: int, length: int, kept: bytes) -> bytes:
    return struct.pack(">BQ", encoding, length) + kept


def _unsized(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(plain)


@pytest.mark.parametrize(
    "content",
    [
        _content(1, 10, zstandard.compress(bytes(100_000_000))),  # a bomb behind a small length
        _content(1, 1 << 60, zstandard.compress(b"")),
        _content(0, 1 << 60, b""),
        _content(1, 100, _unsized(bytes(100))),
        _content(1, 100, zstandard.compress(bytes(100)) + b"more"),
        _content(1, 100, zstandard.compress(bytes(100))[:-1]),
        _content(1, 100, b"no frame"),
        _content(0, 3, b"four"),
        _content(2, 4, b"four"),
    ],
)
def test_content_that_is_not_what_it_declares_is_refused(content: bytes) -> None:
    """Only a holder of the key can make these; they must not cost memory either."""
    with pytest.raises(TamperedError):
        Sealer(KEY).open(by_hand(content), context=CONTEXT)


def test_a_cell_that_could_not_be_opened_again_is_not_sealed() -> None:
    sealer = Sealer(KEY, max_plain_bytes=10)

    assert sealer.open(sealer.seal(bytes(10), context=b"", compress=True), context=b"") == bytes(10)
    with pytest.raises(NarrowError, match="11 bytes; expected at most 10"):
        sealer.seal(bytes(11), context=b"", compress=True)


@pytest.mark.parametrize("compress", [True, False])
def test_no_more_is_unpacked_than_a_cell_may_have(compress: bool) -> None:
    sealed = Sealer(KEY).seal(bytes(100_000), context=CONTEXT, compress=compress)

    with pytest.raises(TamperedError, match="declared length of 100000 bytes"):
        Sealer(KEY, max_plain_bytes=99_999).open(sealed, context=CONTEXT)


@pytest.mark.parametrize("act", [repr, str, vars])
def test_a_sealer_does_not_show_its_key(act: Callable[[object], object]) -> None:
    shown = str(act(Sealer(KEY)))

    assert repr(KEY.key)[2:-1] not in shown
    assert KEY.key.hex() not in shown
