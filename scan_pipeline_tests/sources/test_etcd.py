"""Ranges of a scripted etcd: what is pinned, what ends a walk, and what is refused."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan, scan_json
from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace

CLUSTER = 10_144_879_847_569_953_045
COMPACTED = "etcdserver: mvcc: required revision has been compacted"


@dataclass
class ScriptedEtcd:
    """A store that keeps its history, answers ranges as etcd does, and may be told to lie.

    Attributes:
        history: key, value and revision of each write; None deletes.
        compacted: revisions below it are gone.
        asked: bodies of the ranges asked for.
        lie: changes the n-th answer, from 1.
        meanwhile: what happens before the n-th answer is made.
    """

    history: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    compacted: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)
    lie: dict[int, Callable[[dict[str, Any]], None]] = field(default_factory=dict)
    meanwhile: dict[int, Callable[[], None]] = field(default_factory=dict)

    @property
    def revision(self) -> int:
        return 1 + len(self.history)

    def put(self, *pairs: tuple[bytes, bytes | None]) -> None:
        self.history += pairs

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert (request.method, request.url.path) == ("POST", "/v3/kv/range")
        asked = json.loads(request.content)
        self.asked.append(asked)
        self.meanwhile.get(len(self.asked), lambda: None)()
        revision = int(asked.get("revision", self.revision))
        if revision < self.compacted:
            return httpx2.Response(400, json={"code": 11, "message": COMPACTED})
        answer = self.range(asked, revision)
        self.lie.get(len(self.asked), lambda _: None)(answer)
        return httpx2.Response(200, json=answer)

    def range(self, asked: Mapping[str, str], revision: int) -> dict[str, Any]:
        pairs: dict[bytes, dict[str, str]] = {}
        for number, (key, value) in enumerate(self.history[: revision - 1], start=2):
            before = pairs.pop(key, {})
            if value is not None:
                pairs[key] = {
                    "key": encoded(key),
                    "create_revision": before.get("create_revision", str(number)),
                    "mod_revision": str(number),
                    "version": str(int(before.get("version", "0")) + 1),
                    **({"value": encoded(value)} if value else {}),
                }
        low, high = b64decode(asked["key"]), b64decode(asked["range_end"])
        inside = sorted(key for key in pairs if low <= key and (high == b"\0" or key < high))
        limit = int(asked["limit"])
        header = {"cluster_id": str(CLUSTER), "revision": str(self.revision), "raft_term": "2"}
        answer: dict[str, Any] = {"header": header}
        # The JSON of protocol buffers leaves out what is empty, zero or false.
        if inside:
            answer["kvs"] = [pairs[key] for key in inside[:limit]]
            answer["count"] = str(len(inside))
        if len(inside) > limit:
            answer["more"] = True
        return answer


@dataclass
class Walk:
    """A scan that was run once over a scripted etcd, and where."""

    etcd: ScriptedEtcd
    scan: Scan
    place: Workspace
    night: Night

    @property
    def receipt(self) -> Receipt:
        return self.night.stored.receipt

    @property
    def codes(self) -> set[str]:
        return {f.code for f in self.receipt.findings.first if f.severity != "note"}

    @property
    def rows(self) -> list[dict[str, Any]]:
        return Collection(self.scan, workspace=self.place).latest().frame().collect().to_dicts()


Edit = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]

FACTS: dict[str, Any] = {
    "name": "keys",
    "source": {"protocol": "etcd", "url": "http://etcd.test:2379", "prefix": "a/", "limit": 2},
    "contract": {"key": ["key"], "consistency": "snapshot"},
}


@pytest.fixture
def etcd() -> ScriptedEtcd:
    """Five keys of the prefix, and neighbours on both sides."""
    store = ScriptedEtcd()
    store.put((b"a.", b"before"), (b"a0", b"after"))
    store.put(*((b"a/%d" % number, b"v%d" % number) for number in range(5)))
    return store


@pytest.fixture
def walk(bench: Any, etcd: ScriptedEtcd, edit: Edit) -> Callable[..., Walk]:
    def run(edits: Mapping[str, Any] | None = None) -> Walk:
        scan = parse_scan(edit(FACTS, edits or {}))
        place = bench.workspace(inner=httpx2.MockTransport(etcd))
        return Walk(etcd=etcd, scan=scan, place=place, night=run_scan(scan, workspace=place))

    return run


def encoded(raw: bytes) -> str:
    return b64encode(raw).decode()


def test_first_revision_is_named_on_every_later_request(
    walk: Callable[..., Walk], etcd: ScriptedEtcd
) -> None:
    """Though the store moves on, and later answers name newer revisions."""
    pinned = etcd.revision
    etcd.meanwhile = {
        2: lambda: etcd.put((b"a/00", b"early"), (b"a/4", b"changed")),
        3: lambda: etcd.put((b"a/2", None), (b"a/9", b"late")),
    }

    walked = walk()

    assert walked.receipt.coverage_status == "verified"
    assert walked.receipt.snapshot_id == f"{pinned}@{CLUSTER:x}"
    assert [asked.get("revision") for asked in etcd.asked] == [None, *[str(pinned)] * 4]
    assert [(row["key"], row["value"]) for row in walked.rows] == [
        (f"a/{number}", f"v{number}") for number in range(5)
    ]


def test_next_page_begins_right_after_the_last_key(
    walk: Callable[..., Walk], etcd: ScriptedEtcd
) -> None:
    walk()

    asked = [b64decode(each["key"]) for each in etcd.asked]
    assert asked[:3] == [b"a/", b"a/1\0", b"a/3\0"]
    assert {b64decode(each["range_end"]) for each in etcd.asked} == {b"a0"}


def test_count_is_what_remains(walk: Callable[..., Walk]) -> None:
    receipt = walk().receipt

    assert (receipt.records_expected, receipt.pages_observed) == (5, 3)
    assert {each.name: each.result for each in receipt.expectations} == {"source_count": "met"}


@pytest.mark.parametrize("keys", [0, 1, 2, 4])
def test_absent_more_ends_a_range_of_any_size(
    walk: Callable[..., Walk], etcd: ScriptedEtcd, keys: int
) -> None:
    """Empty, short, exactly one page, exactly two."""
    etcd.history = etcd.history[: 2 + keys]

    receipt = walk().receipt

    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", keys)
    assert receipt.terminal_evidence is not None
    assert receipt.terminal_evidence.signal == "false"


def test_audit_agrees_with_the_receipt(walk: Callable[..., Walk]) -> None:
    walked = walk()

    audit = Audit("keys", walked.receipt.scan_generation, workspace=walked.place).run()

    assert audit.agrees


def test_compaction_begins_a_generation_from_nothing(
    walk: Callable[..., Walk], etcd: ScriptedEtcd
) -> None:
    def compact() -> None:
        etcd.put((b"a/5", b"v5"))
        etcd.compacted = etcd.revision

    etcd.meanwhile = {2: compact}

    night = walk().night

    (expired,) = (stored.receipt for stored in night.earlier)
    assert (expired.stop_reason, expired.coverage_status) == ("snapshot_expired", "unknown")
    assert night.stored.receipt.scan_generation.endswith(".2")
    assert night.stored.receipt.coverage_status == "verified"
    assert night.stored.receipt.unique_ids_observed == 6


def without(*names: str) -> Callable[[dict[str, Any]], None]:
    return lambda answer: [answer.pop(name) for name in names] and None


@pytest.mark.parametrize(
    ("lie", "code"),
    [
        pytest.param(without("more"), "end_signals_disagree", id="more-lost"),
        pytest.param(without("more", "count"), "end_signals_disagree", id="more-and-count-lost"),
        pytest.param(lambda a: a.update(more=True, kvs=[]), "end_signals_disagree", id="no-pairs"),
        pytest.param(lambda a: a.update(count="2"), "end_signals_disagree", id="count-too-low"),
        pytest.param(lambda a: a.update(count="5"), "count_changed", id="count-moved"),
        pytest.param(lambda a: a.update(count="many"), "reported_invalid", id="count-no-number"),
        pytest.param(lambda a: a.update(more="yes"), "continuation_invalid", id="more-no-boolean"),
        pytest.param(without("header"), "records_missing", id="no-header"),
        pytest.param(lambda a: a["header"].pop("revision"), "reported_invalid", id="no-revision"),
        pytest.param(
            lambda a: a["header"].update(cluster_id="7"), "snapshot_changed", id="other-cluster"
        ),
        pytest.param(
            lambda a: a["kvs"][0].update(mod_revision="99"), "snapshot_changed", id="later-write"
        ),
        pytest.param(lambda a: a["kvs"].reverse(), "order_broken", id="out-of-order"),
        pytest.param(
            lambda a: a["kvs"][0].update(key=encoded(b"a/1")), "order_broken", id="before-position"
        ),
        pytest.param(
            lambda a: a["kvs"][1].update(key=encoded(b"a0")), "order_broken", id="after-range"
        ),
        pytest.param(lambda a: a["kvs"][0].update(colour=1), "reported_invalid", id="odd-member"),
        pytest.param(lambda a: a["kvs"][0].update(value="?"), "reported_invalid", id="no-base64"),
    ],
)
def test_second_page_that_cannot_be_one_fails_the_walk(
    walk: Callable[..., Walk],
    etcd: ScriptedEtcd,
    lie: Callable[[dict[str, Any]], None],
    code: str,
) -> None:
    etcd.lie = {2: lie}

    walked = walk()

    assert walked.receipt.coverage_status == "failed"
    assert code in walked.codes


def test_key_lost_under_the_pin_is_found(walk: Callable[..., Walk], etcd: ScriptedEtcd) -> None:
    """One key is left out of a page, and the count of that page with it."""

    def lose(answer: dict[str, Any]) -> None:
        del answer["kvs"][0]
        answer["count"] = "2"

    etcd.lie = {2: lose}

    walked = walk()

    assert walked.receipt.coverage_status == "failed"
    assert {"count_changed", "count_missed"} <= walked.codes


def test_bytes_that_are_no_text_are_kept_and_seen(
    walk: Callable[..., Walk], etcd: ScriptedEtcd
) -> None:
    etcd.put((b"a/4", b"\xff\x00"))

    walked = walk(
        {
            "record_schema": [
                {"name": "key", "type": "string", "nullable": False},
                {"name": "value", "type": "string", "nullable": False},
                *(
                    {"name": name, "type": "int64"}
                    for name in ("create_revision", "mod_revision", "version", "lease")
                ),
            ]
        }
    )

    receipt = walked.receipt
    assert (receipt.coverage_status, receipt.accepted) == ("verified", False)
    assert receipt.extraction.nonconforming == 1


def test_key_that_is_no_text_has_to_be_declared(
    walk: Callable[..., Walk], etcd: ScriptedEtcd
) -> None:
    etcd.put((b"a/\xff", b"v"))

    assert "record_without_key" in walk().codes
    assert walk({"source.keys": "base64"}).receipt.coverage_status == "verified"


def test_json_values_are_opened_exactly(walk: Callable[..., Walk], etcd: ScriptedEtcd) -> None:
    etcd.history = []
    etcd.put((b"a/0", b'{"b": 12345678901234567.89, "a": [9007199254740993]}'), (b"a/1", b"{"))
    fields = ("create_revision", "mod_revision", "version", "lease")

    walked = walk(
        {
            "source.values": "json",
            "contract.accept": {"nonconforming": 1},
            "record_schema": [
                {"name": "key", "type": "string", "nullable": False},
                {"name": "value", "type": "json"},
                *({"name": name, "type": "int64"} for name in fields),
            ],
        }
    )

    first, second = walked.rows
    assert first["value"] == '{"a":[9007199254740993],"b":12345678901234567.89}'
    assert (second["value"], json.loads(second["_extra"])) == (None, {"value_base64": "ew=="})


def test_live_contract_reads_the_newest_revision_each_time(
    walk: Callable[..., Walk], etcd: ScriptedEtcd
) -> None:
    etcd.meanwhile = {2: lambda: etcd.put((b"a/4", b"changed"))}

    walked = walk(
        {
            "contract.consistency": "live",
            "contract.accept": {"scope": "records_encountered_in_live_traversal"},
        }
    )

    assert [asked.get("revision") for asked in etcd.asked] == [None] * 3
    assert walked.receipt.coverage_status == "unknown"
    assert walked.receipt.conclusion_scope == "records_encountered_in_live_traversal"


def test_token_travels_bare_and_never_reaches_the_receipt(
    bench: Any, etcd: ScriptedEtcd, edit: Edit
) -> None:
    sent: list[str | None] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers.get("authorization"))
        return etcd(request)

    key = {"api_key": {"header": "authorization", "value": {"env": "ETCD_TOKEN"}}}
    scan = parse_scan(edit(FACTS, {"source.auth": key}))
    place = bench.workspace(inner=httpx2.MockTransport(answer), environ={"ETCD_TOKEN": "t0ken.9"})

    stored = run_scan(scan, workspace=place).stored

    assert set(sent) == {"t0ken.9"}
    assert "t0ken.9" not in repr(stored)


def test_scan_reads_back_as_it_was_written() -> None:
    scan = parse_scan(FACTS)

    assert parse_scan(scan_json(scan)) == scan


@pytest.mark.parametrize(
    "odd",
    [
        {"continuation": "single_use"},
        {"high_water_mark": {"url": "http://etcd.test:2379", "at": "x", "send_as": "y"}},
        {"params": {"a": "b"}},
    ],
)
def test_facts_that_etcd_has_no_place_for_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ScanFileError):
        parse_scan({**FACTS, "source": {**FACTS["source"], **odd}})
