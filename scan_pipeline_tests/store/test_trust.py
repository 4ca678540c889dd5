"""Whose signature on a receipt is believed."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from securesystemslib.signer import CryptoSigner

from scan_pipeline.core.errors import ConfigurationError, TamperedError
from scan_pipeline.store.trust import (
    PAYLOAD_TYPE,
    Trust,
    TrustedKey,
    add_key,
    begin_trust,
    receipt_id,
    sign,
)

AT = datetime(2026, 11, 30, 2, tzinfo=UTC)
PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1","predicate":{"records_observed":8742}}'


def signer_of(number: int) -> CryptoSigner:
    return CryptoSigner(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


def trusted(signer: CryptoSigner) -> TrustedKey:
    return TrustedKey.of(signer.public_key, added_at=AT, note="test")


@pytest.fixture
def signer() -> CryptoSigner:
    return signer_of(1)


@pytest.fixture
def trust(tmp_path: Path, signer: CryptoSigner) -> Trust:
    return add_key(tmp_path / "scan_pipeline_trust.json", key=trusted(signer), lake=None)


def test_what_was_signed_comes_out_under_the_digest_of_its_bytes(
    trust: Trust, signer: CryptoSigner
) -> None:
    verified = trust.verify(sign(PAYLOAD, signer=signer))

    assert verified.payload == PAYLOAD
    assert verified.receipt_id == "sha256:" + hashlib.sha256(PAYLOAD).hexdigest()
    assert verified.key_id == signer.public_key.keyid


def test_the_envelope_is_dsse_by_the_letter(signer: CryptoSigner) -> None:
    """Pre-authentication encoding written out here, verified without securesystemslib."""
    envelope = json.loads(sign(PAYLOAD, signer=signer))
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(trusted(signer).public))
    pae = b"DSSEv1 28 application/vnd.in-toto+json %d " % len(PAYLOAD) + PAYLOAD

    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), pae)
    assert base64.b64decode(envelope["payload"]) == PAYLOAD
    assert envelope["payloadType"] == PAYLOAD_TYPE
    assert sorted(envelope) == ["payload", "payloadType", "signatures"]


def test_signing_twice_gives_the_same_bytes(signer: CryptoSigner) -> None:
    envelope = sign(PAYLOAD, signer=signer)

    assert sign(PAYLOAD, signer=signer) == envelope
    assert b" " not in envelope


def test_reading_needs_the_public_half_only(tmp_path: Path, signer: CryptoSigner) -> None:
    envelope = sign(PAYLOAD, signer=signer)
    add_key(tmp_path / "trust.json", key=trusted(signer), lake=None)

    assert [file.name for file in tmp_path.iterdir()] == ["trust.json"]
    assert Trust.load(tmp_path / "trust.json", lake=None).verify(envelope).payload == PAYLOAD


def _payload_edited(envelope: dict[str, Any]) -> None:
    envelope["payload"] = base64.b64encode(PAYLOAD.replace(b"8742", b"9000")).decode()


def _signature_edited(envelope: dict[str, Any]) -> None:
    signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    signature[3] ^= 1
    envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()


def _signature_cut(envelope: dict[str, Any]) -> None:
    envelope["signatures"][0]["sig"] = ""


def _signature_taken_off(envelope: dict[str, Any]) -> None:
    envelope["signatures"] = []


def _signed_twice(envelope: dict[str, Any]) -> None:
    envelope["signatures"] *= 2


def _unnamed_key(envelope: dict[str, Any]) -> None:
    envelope["signatures"][0]["keyid"] = "0" * 64


def _other_type(envelope: dict[str, Any]) -> None:
    envelope["payloadType"] = "application/json"


def _more_members(envelope: dict[str, Any]) -> None:
    envelope["note"] = "x"


def _more_in_signature(envelope: dict[str, Any]) -> None:
    envelope["signatures"][0]["cert"] = "x"


def _loose_base64(envelope: dict[str, Any]) -> None:
    envelope["payload"] += "\n"


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (_payload_edited, "does not fit the payload"),
        (_signature_edited, "does not fit the payload"),
        (_signature_cut, "does not fit the payload"),
        (_signature_taken_off, "signatures"),
        (_signed_twice, "signatures"),
        (_unnamed_key, "by key 0000"),
        (_other_type, "'application/json'"),
        (_more_members, "note"),
        (_more_in_signature, "cert"),
        (_loose_base64, "not base64"),
    ],
)
def test_an_edited_envelope_is_refused(
    trust: Trust, signer: CryptoSigner, edit: Callable[[dict[str, Any]], None], told: str
) -> None:
    envelope = json.loads(sign(PAYLOAD, signer=signer))
    edit(envelope)

    with pytest.raises(TamperedError, match=told) as refused:
        trust.verify(json.dumps(envelope).encode())
    assert refused.value.what == "signature"
    assert "expected" in str(refused.value)


@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xfe", b"null", b"[]", b"{}", b"[" * 100_000, b'{"payload":1}', b"{} {}"]
)
def test_what_is_no_envelope_is_refused(trust: Trust, raw: bytes) -> None:
    with pytest.raises(TamperedError, match="no DSSE envelope"):
        trust.verify(raw)


def test_a_member_named_twice_is_refused(trust: Trust, signer: CryptoSigner) -> None:
    """Two readers could take two payloads from one envelope."""
    envelope = sign(PAYLOAD, signer=signer)
    doubled = envelope.replace(b'{"payload":', b'{"payload":"e30=","payload":', 1)

    with pytest.raises(TamperedError, match="twice"):
        trust.verify(doubled)


def test_the_url_safe_alphabet_is_taken_too(trust: Trust, signer: CryptoSigner) -> None:
    payload = b'{"a":"\xc3\xbf\xc3\xbf>>>???"}'
    envelope = json.loads(sign(payload, signer=signer))
    sent = {**envelope, "payload": base64.urlsafe_b64encode(payload).decode()}

    assert sent != envelope
    assert trust.verify(json.dumps(sent).encode()).payload == payload


def test_a_key_that_is_not_listed_is_named_with_what_was_expected(
    trust: Trust, signer: CryptoSigner
) -> None:
    other = signer_of(2)

    with pytest.raises(TamperedError) as refused:
        trust.verify(sign(PAYLOAD, signer=other))
    assert other.public_key.keyid in str(refused.value)
    assert trusted(signer).fingerprint in str(refused.value)


def test_a_foreign_signature_under_a_trusted_id_is_refused(
    trust: Trust, signer: CryptoSigner
) -> None:
    envelope = json.loads(sign(PAYLOAD, signer=signer_of(2)))
    envelope["signatures"][0]["keyid"] = signer.public_key.keyid

    with pytest.raises(TamperedError, match="does not fit"):
        trust.verify(json.dumps(envelope).encode())


def test_rotation_adds_a_key_and_keeps_the_old_receipts(trust: Trust, signer: CryptoSigner) -> None:
    newer = signer_of(2)
    rotated = add_key(trust.path, key=trusted(newer), lake=None)

    assert len(rotated.keys) == 2
    for each in (signer, newer):
        assert rotated.verify(sign(PAYLOAD, signer=each)).key_id == each.public_key.keyid
    assert add_key(trust.path, key=trusted(newer), lake=None) == rotated
    assert Trust.load(trust.path, lake=None) == rotated


def test_the_fingerprint_is_the_digest_of_the_raw_public_key(signer: CryptoSigner) -> None:
    raw = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32).public_key().public_bytes_raw()

    assert trusted(signer).fingerprint == "sha256:" + hashlib.sha256(raw).hexdigest()


def test_the_file_is_readable_and_what_was_written_is_what_is_read(trust: Trust) -> None:
    entry = json.loads(trust.path.read_bytes())

    assert trust.path.stat().st_mode & 0o777 == 0o644
    assert entry["version"] == 1
    assert sorted(entry["keys"][0]) == [
        "added_at", "keyid", "keytype", "note", "public", "scheme",
    ]  # fmt: skip
    assert entry["keys"][0]["added_at"] == "2026-11-30T02:00:00Z"


def test_a_first_key_is_only_put_where_none_is(tmp_path: Path, signer: CryptoSigner) -> None:
    path = tmp_path / "below" / "trust.json"
    begin_trust(path, key=trusted(signer), lake=None)
    begin_trust(path, key=trusted(signer_of(2)), lake=None)
    assert Trust.load(path, lake=None).keys == (trusted(signer),)

    path.write_text('{"version": 1, "keys": []}', encoding="utf-8")
    begin_trust(path, key=trusted(signer_of(2)), lake=None)
    assert Trust.load(path, lake=None).keys == (trusted(signer_of(2)),)


def test_a_trust_file_inside_the_lake_is_refused(tmp_path: Path, signer: CryptoSigner) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    add_key(lake / "trust.json", key=trusted(signer), lake=None)
    (tmp_path / "linked.json").symlink_to(lake / "trust.json")

    for path in (lake / "trust.json", tmp_path / "linked.json"):
        with pytest.raises(ConfigurationError, match="inside the lake"):
            Trust.load(path, lake=str(lake))
        with pytest.raises(ConfigurationError, match="inside the lake"):
            add_key(path, key=trusted(signer_of(2)), lake=str(lake))


def test_a_missing_trust_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="SCAN_PIPELINE_TRUST"):
        Trust.load(tmp_path / "none.json", lake=None)


def test_a_trust_file_that_everyone_may_write_is_refused(trust: Trust) -> None:
    trust.path.chmod(0o666)

    with pytest.raises(ConfigurationError, match="chmod 644"):
        Trust.load(trust.path, lake=None)


def _no_version(file: dict[str, Any]) -> None:
    del file["version"]


def _later_version(file: dict[str, Any]) -> None:
    file["version"] = 2


def _unknown_member(file: dict[str, Any]) -> None:
    file["keys"][0]["expires"] = "2027"


def _other_scheme(file: dict[str, Any]) -> None:
    file["keys"][0]["scheme"] = "rsassa-pss-sha256"


def _short_key(file: dict[str, Any]) -> None:
    file["keys"][0]["public"] = "00"


def _no_time_zone(file: dict[str, Any]) -> None:
    file["keys"][0]["added_at"] = "2026-11-30T02:00:00"


def _id_of_another_key(file: dict[str, Any]) -> None:
    file["keys"][0]["public"] = trusted(signer_of(2)).public


def _listed_twice(file: dict[str, Any]) -> None:
    file["keys"] *= 2


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (_no_version, "version"),
        (_later_version, "version"),
        (_unknown_member, "expires"),
        (_other_scheme, "scheme"),
        (_short_key, "public"),
        (_no_time_zone, "added_at"),
        (_id_of_another_key, "correct the entry"),
        (_listed_twice, "lists a key twice"),
    ],
)
def test_a_malformed_trust_file_is_refused(
    trust: Trust, edit: Callable[[dict[str, Any]], None], told: str
) -> None:
    file = json.loads(trust.path.read_bytes())
    edit(file)
    trust.path.write_text(json.dumps(file), encoding="utf-8")

    with pytest.raises(ConfigurationError, match=told):
        Trust.load(trust.path, lake=None)


def test_a_trust_file_that_is_no_json_or_names_a_member_twice_is_refused(trust: Trust) -> None:
    for text in ("", '{"version": 1, "keys": [], "keys": []}'):
        trust.path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigurationError, match="not plain JSON"):
            Trust.load(trust.path, lake=None)


def test_only_ed25519_keys_are_entered_and_only_under_their_id(
    tmp_path: Path, signer: CryptoSigner
) -> None:
    with pytest.raises(ConfigurationError, match="expected ed25519"):
        trusted(CryptoSigner.generate_ecdsa())
    with pytest.raises(ConfigurationError, match="found keyid"):
        add_key(tmp_path / "t.json", key=replace(trusted(signer), keyid="0" * 64), lake=None)


def test_receipt_id_is_that_of_the_bytes() -> None:
    """SHA-256 of the empty string, FIPS 180-4."""
    assert receipt_id(b"") == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
