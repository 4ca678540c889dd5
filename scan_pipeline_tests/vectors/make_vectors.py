"""Write the frozen formats' test vectors, without one line of the code they test.

canonical.json is written by hand: the examples of RFC 8785 (June 2020, sections 3.2.2, 3.2.3
and appendix B), exact numbers that no float holds, and texts to refuse; here it is only checked.
The others are computed: canonical JSON by the `rfc8785` package, trees by recursion along the
words of RFC 9162 (December 2021, section 2.1), anchored by the published roots of
transparency-dev/merkle (testonly/constants.go).

    python scan_pipeline_tests/vectors/make_vectors.py     # writes the JSON files beside it
"""

import json
import struct
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import rfc8785

HERE = Path(__file__).parent


def check_canonical() -> None:
    """Hold the hand-written canonical.json against the rfc8785 package and exact values."""
    cases = json.loads((HERE / "canonical.json").read_text(encoding="ascii"))
    for case in cases["rfc8785_appendix_b"]:
        (number,) = struct.unpack(">d", bytes.fromhex(case["ieee754"]))
        same(rfc8785.dumps(number).decode(), case["canonical"])
    for case in cases["rfc8785_documents"]:
        same(rfc8785.dumps(json.loads(case["text"])).decode(), case["canonical"])
    for case in cases["exact_numbers"]:
        same(Decimal(case["text"]), Decimal(case["canonical"]))
    for case in cases["exact_documents"]:
        same(rfc8785.dumps(json.loads(case["text"])).decode(), case["canonical"])


# --- keys, leaves, items ----------------------------------------------------------------------

KEYS = [
    ["customer-1"], ["1"], [1], [-1], [0], [""], ["eu", 17], [17, "eu"], ["a", "b"], ['a","b'],
    ["back\\slash\nline\u0001\u007f/"], ["caf\u00e9"], ["cafe\u0301"], ["Customer-1"],
    ["\U0001f600"],
]  # fmt: skip

WIDE_KEYS = {  # integers that the rfc8785 package refuses, by hand
    2**53 + 1: "[9007199254740993]",
    2**63: "[9223372036854775808]",
    2**64: "[18446744073709551616]",
    10**21: "[1e+21]",
}

RECORDS = [
    b"",
    b"{}",
    b'{"customer_id":"customer-1"}',
    b'{ "customer_id" : "customer-1" }',
    b'{"customer_id":"customer-2","amount":12345678901234567.89}',
]


def key_vectors() -> dict:
    keys = [(fields, rfc8785.dumps(fields).decode()) for fields in KEYS]
    keys += [([number], text) for number, text in WIDE_KEYS.items()]
    leaves = [leaf(record) for record in RECORDS]
    return {
        "keys": [
            {"fields": fields, "key": text, "key_hash": hashed(b"\x02", text.encode()).hex()}
            for fields, text in keys
        ],
        "leaves": [
            {"record": record.decode(), "leaf": found.hex()}
            for record, found in zip(RECORDS, leaves, strict=True)
        ],
        "items": [
            {"leaves": [each.hex() for each in page], "digest": hashed(*page).hex()}
            for page in ([], leaves[:1], leaves, leaves[::-1], leaves[:1] * 2)
        ],
    }


# --- trees ------------------------------------------------------------------------------------

CT_INPUTS = [
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]  # fmt: skip

CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

COLLECTIONS = [
    [],
    [(None, 3)],
    [("eu", 2), ("us", 5), (None, 1)],
    [("a", 1), ("a,", 2), ('a"', 3), ("", 4), ("\U0001f600", 5), ("\ufb33", 6)],
    [(1, 1), ("1", 2), (10, 3), (2, 4), (-1, 5)],
    [("00", 7), ("7f", 8), ("ff", 9)],
]


def tree_vectors() -> dict:
    ct_leaves = [leaf(bytes.fromhex(each)) for each in CT_INPUTS]
    for size, root in enumerate(CT_ROOTS):
        same(mth(ct_leaves[:size]).hex(), root)
    sizes = [*range(71), 2**17 - 1, 2**17, 2**17 + 1]
    return {
        "certificate_transparency": {"inputs": CT_INPUTS, "roots": CT_ROOTS},
        "leaf_rule": "leaf i is SHA-256(0x00 || i in decimal digits)",
        "roots": [{"size": size, "root": mth(numbered(size)).hex()} for size in sizes],
        "collections": [collection(each) for each in COLLECTIONS],
    }


def collection(partitions: list) -> dict:
    members = []
    for value, leaf_count in partitions:
        root = mth(numbered(leaf_count)).hex()
        text = rfc8785.dumps(["scan-pipeline/partition/v1", value, leaf_count, root]).decode()
        members.append((text, {"value": value, "leaf_count": leaf_count, "root": root}))
    order = sorted(text.encode() for text, _ in members)
    return {
        "partitions": [
            {**member, "statement": text, "leaf": leaf(text.encode()).hex()}
            for text, member in members
        ],
        "root": mth([leaf(text) for text in order]).hex(),
    }


def proof_vectors() -> dict:
    names = ("ada", "bob", "cleo", "dan", "eve")
    records = sorted((f'{{"id":"{name}"}}'.encode() for name in names), key=record_place)
    absences = [absence("zoe", []), absence("zoe", records[:1])]
    absences += [absence(name, records) for name in ("zoe", "ann", "fay", "leo", "ola")]
    edges = {(bool(each["before"]), bool(each["after"])) for each in absences}
    same(len(edges), 4)  # in the middle, at each edge, and in the empty tree
    return {
        "leaf_rule": "leaf i is SHA-256(0x00 || i in decimal digits)",
        "inclusion": [
            inclusion(index, size)
            for size in (1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 70)
            for index in sorted({0, 1, size // 2, size - 2, size - 1} & set(range(size)))
        ],
        "absence": absences,
    }


def inclusion(index: int, size: int) -> dict:
    leaves = numbered(size)
    path = [each.hex() for each in inclusion_path(index, leaves)]
    return {"size": size, "index": index, "root": mth(leaves).hex(), "path": path}


def record_place(record: bytes) -> bytes:
    return hashed(b"\x02", rfc8785.dumps([json.loads(record)["id"]]))


def absence(name: str, records: list) -> dict:
    key = rfc8785.dumps([name])
    place, leaves = hashed(b"\x02", key), [leaf(record) for record in records]
    above = sum(record_place(record) < place for record in records)

    def member(index: int) -> dict | None:
        if not 0 <= index < len(records):
            return None
        path = [each.hex() for each in inclusion_path(index, leaves)]
        return {"content": records[index].decode(), "index": index, "path": path}

    return {
        "key": key.decode(),
        "size": len(records),
        "root": mth(leaves).hex(),
        "before": member(above - 1),
        "after": member(above),
    }


# --- chain ------------------------------------------------------------------------------------

OPEN = {"kind": "open", "scan": "customers", "scan_generation": "20261130T020000Z"}

# kind, token sent, token or (end,) that followed, records, body, what the source reported
WALK = [
    ("refused", None, None, [], b"slow down", {"kind": "refused", "status": 429}),
    ("page", None, "c2", [b"1", b"2"], b"[1,2]", {"kind": "page", "returned": 2, "total": 3}),
    ("page", "c2", "none", [], b"[]", {"kind": "page", "returned": 0, "total": 3}),
    ("refused", "none", None, [], b"", {"kind": "refused", "status": None}),
    ("page", "none", ("null",), [b"3"], b"[3]", {"kind": "page", "returned": 1, "total": 3}),
    ("close", ("null",), None, [], b"", {"kind": "close", "traversal": "finished"}),
]


def chain_vectors() -> dict:
    opened = hashed(rfc8785.dumps(OPEN))
    chain = hashed(b"scan-pipeline/chain/v1\x00", opened)
    start, events = chain, []
    for seq, (kind, sent, followed, records, body, facts) in enumerate(WALK, start=1):
        cursor_in = cursor(sent)
        link = {
            "cursor_in": cursor_in,
            "cursor_out": cursor(followed) if kind == "page" else cursor_in,
            "items": hashed(*[leaf(record) for record in records]),
            "body": hashed(body),
            "reported": hashed(rfc8785.dumps(facts)),
        }
        chain = hashed(chain, struct.pack(">Q", seq), *link.values())
        event = {
            "seq": seq,
            "kind": kind,
            "sent": sent,
            "followed": followed,
            "records": [record.decode() for record in records],
            "response": body.decode(),
            "facts": facts,
        }
        digests = {name: digest.hex() for name, digest in link.items()}
        events.append({**event, **digests, "chain": chain.hex()})
    return {
        "empty_digest": hashed().hex(),
        "cursors": [
            {"token": token, "digest": cursor(token).hex()}
            for token in (None, "none", "end:null", "token:c2", "c2", "", "\u00e9", "e\u0301")
        ],
        "ends": [
            {"signal": signal, "digest": cursor((signal,)).hex()}
            for signal in ("null", "absent", "empty_page", "none")
        ],
        "open": OPEN,
        "open_digest": opened.hex(),
        "start": start.hex(),
        "events": events,
    }


def cursor(follows: str | tuple | None) -> bytes:
    match follows:
        case None:
            return hashed(b"none")
        case (signal,):
            return hashed(b"end:", signal.encode())
    return hashed(b"token:", follows.encode())


# --- RFC 9162, section 2.1 --------------------------------------------------------------------


def hashed(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).digest()


def leaf(content: bytes) -> bytes:
    return hashed(b"\x00", content)


def numbered(size: int) -> list[bytes]:
    return [leaf(str(number).encode()) for number in range(size)]


def mth(leaves: list[bytes]) -> bytes:
    """2.1.1: the empty tree; one leaf; else split at the largest power of two below n."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashed()
    k = split(len(leaves))
    return hashed(b"\x01", mth(leaves[:k]), mth(leaves[k:]))


def inclusion_path(m: int, leaves: list[bytes]) -> list[bytes]:
    """2.1.3.1: PATH(m, D_n)."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*inclusion_path(m, leaves[:k]), mth(leaves[k:])]
    return [*inclusion_path(m - k, leaves[k:]), mth(leaves[:k])]


def split(n: int) -> int:
    return max(2**power for power in range(n.bit_length()) if 2**power < n)


def same(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"found {found!r}, expected {expected!r}")


def build() -> dict[str, str]:
    """Return the text of each computed file by its name."""
    check_canonical()
    return {
        "keys.json": render(key_vectors()),
        "tree.json": render(tree_vectors()),
        "proofs.json": render(proof_vectors()),
        "chain.json": render(chain_vectors()),
    }


def render(vectors: dict) -> str:
    """Write JSON with one case on each line."""
    blocks = []
    for name, cases in vectors.items():
        if isinstance(cases, list):
            lines = ",\n".join(f"  {json.dumps(case)}" for case in cases)
            blocks.append(f" {json.dumps(name)}: [\n{lines}\n ]")
        else:
            blocks.append(f" {json.dumps(name)}: {json.dumps(cases)}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    for name, text in build().items():
        (HERE / name).write_text(text, encoding="ascii")
