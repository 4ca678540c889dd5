"""A member taken out of a record, byte for byte."""

import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.sources.http.envelope import cut_member


@pytest.mark.parametrize(
    ("record", "kept", "cut"),
    [
        (b'{"a":1,"sort":[1, 2],"b":2}', b'{"a":1,"b":2}', b"[1, 2]"),
        (b'{"sort":[1],"b":2}', b'{"b":2}', b"[1]"),
        (b'{"a":1 , "sort" : [1] }', b'{"a":1 }', b"[1]"),
        (b'{"sort":null}', b"{}", b"null"),
        (b'{"a":{"sort":[1]}}', b'{"a":{"sort":[1]}}', None),
        (
            b'{"a":{"sort":[1]},"sort":[9007199254740993]}',
            b'{"a":{"sort":[1]}}',
            b"[9007199254740993]",
        ),
        (b'{"a":"\\ud800","sort":["\\udc00"]}', b'{"a":"\\ud800"}', b'["\\udc00"]'),
        (b'{"a":"\\"sort\\":","sort":[1]}', b'{"a":"\\"sort\\":"}', b"[1]"),
    ],
)
def test_member_is_cut_as_it_was_sent(record: bytes, kept: bytes, cut: bytes | None) -> None:
    """Whatever stands around it, and however often its name stands elsewhere."""
    assert cut_member(record, "sort") == (kept, cut)


def test_doubled_member_does_not_vanish() -> None:
    """One of the two is cut; the other stays for the record's reader to refuse."""
    assert cut_member(b'{"sort":[1],"sort":[2]}', "sort") == (b'{"sort":[1]}', b"[2]")


@pytest.mark.parametrize("record", [b"[1]", b'"sort"', b"{", b'{"\\u0073ort":[1]}'])
def test_what_cannot_be_cut_is_refused(record: bytes) -> None:
    with pytest.raises(ProtocolError):
        cut_member(record, "sort")
