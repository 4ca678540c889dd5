"""How to check a bundle, for somebody who has it, a fingerprint, and perhaps not our tool."""

from typing import Final

_GUIDE: Final = """\
# How to check this bundle

It holds the signed account (receipt) of one reading of a collection: {scan} {generation}.

First get the fingerprint of the signing key **from its owner, in another way than this file**
(a call, a web page of theirs, a contract). The key in here is not trust: whoever forges a bundle
puts a key of their own into it. `keys.json` shows:

{fingerprints}

## With the tool

    pip install scan-pipeline
    scan-pipeline audit --bundle THIS.zip --fingerprint SHA256:...

It needs no lake, no project and no network. Exit 0: all agrees; 1: something does not, and is
named. It says how deep it could look: `receipt` (signatures and files), `ledger` (the chain was
linked again), `partitions` (the root was computed from the partitions), `leaves` (from every
record's hash), `bytes` (from every record's bytes). This bundle was made to reach `{level}`.

## By hand

Unpack it into an empty folder. With Python 3 alone: the files against the manifest, the chain
against the receipt, and the bytes that were signed. Believe none of it before openssl has said
`Signature Verified Successfully` twice, below.

```python
import base64, hashlib, json, pathlib

def same(what, found, expected):
    if found != expected:
        raise SystemExit(f"DISAGREES: {{what}}: found {{found}}; expected {{expected}}")

def digest(content):
    return hashlib.sha256(content).hexdigest()

there = {{each.as_posix() for each in pathlib.Path().rglob("*") if each.is_file()}}
signed = {{}}
for name in ("manifest", "receipt"):
    envelope = json.loads(pathlib.Path(name + ".dsse.json").read_bytes())
    kind, body = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    # DSSE 1.0: what a signature is over
    text = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)
    pathlib.Path(name + ".signed").write_bytes(text)
    pathlib.Path(name + ".sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    signed[name] = body

manifest, receipt = json.loads(signed["manifest"]), json.loads(signed["receipt"])["predicate"]
same("receipt", "sha256:" + digest(signed["receipt"]), manifest["receipt_id"])
files = {{each["path"]: each["sha256"] for each in manifest["files"]}}
same("files", there, {{*files, "manifest.dsse.json"}})
for path, expected in files.items():
    same(path, digest(pathlib.Path(path).read_bytes()), expected)

if "ledger.jsonl" in files:
    lines = pathlib.Path("ledger.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    opened = bytes.fromhex(events[0]["facts_digest"])
    chain = hashlib.sha256(b"scan-pipeline/chain/v1\\0" + opened).digest()
    for event in events[1:]:
        parts = ("cursor_in", "cursor_out", "items", "body", "facts")
        linked = b"".join(bytes.fromhex(event[part + "_digest"]) for part in parts)
        chain = hashlib.sha256(chain + event["seq"].to_bytes(8, "big") + linked).digest()
    same("chain", "sha256:" + chain.hex(), receipt["cursor_chain_digest"])
print(receipt["statement"])
```

Then the fingerprint of each key, and the signatures, with openssl 3:

```sh
for name in manifest receipt; do
  openssl pkey -pubin -in $name.key.pem -outform DER | tail -c 32 | openssl dgst -sha256
  openssl pkeyutl -verify -pubin -inkey $name.key.pem -rawin -in $name.signed -sigfile $name.sig
done
```

The tree: a record's leaf is SHA-256(0x00 || bytes); a node SHA-256(0x01 || left || right), as in
RFC 9162; within a partition leaves stand in the order of key_hash. A partition's leaf is that of
the JSON `["scan-pipeline/partition/v1",VALUE,LEAVES,"ROOT"]`, in the order of those bytes.

## What is in it

- `REPORT.md`: the account in words; `receipt.json`: in full; `receipt.dsse.json`: signed.
- `manifest.dsse.json`: the signed list of every other file.
- `ledger.jsonl`: every answer of the walk, without bodies and tokens. A token stands as its
  SHA-256, so that one which can be guessed (an offset) can be recognised.
- `partition_summaries.json`, `findings.json`, `contract.json` (secrets are names, never values).
- `records/`, if included: the records, their signed note, and `leaves.parquet`.
"""


def guide(*, scan: str, generation: str, fingerprints: tuple[str, ...], level: str) -> str:
    """Return the guide of a bundle, in Markdown.

    Args:
        scan: the scan.
        generation: its generation.
        fingerprints: of the keys in it.
        level: how deep an audit of it can look.
    """
    listed = "\n".join(f"    {each}" for each in fingerprints)
    return _GUIDE.format(scan=scan, generation=generation, fingerprints=listed, level=level)
