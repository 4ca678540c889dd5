"""Sources of one's own: found by their path, walked like any other, their revision in the scope."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scan_pipeline.adapters import Adapter, Answered, End, Position, TransientSourceError
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import (
    ContinuationConsumedError,
    ProtocolError,
    SourceUnavailableError,
)
from scan_pipeline.core.page import Opening
from scan_pipeline.core.receipt_statement import receipt_json
from scan_pipeline.core.scan import scan_json
from scan_pipeline.sources.adapter import AdapterFacts, AdapterRef
from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline.sources.scan_file import LocatedScanFileError, read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.sources.over_http import Asking
from scan_pipeline_tests.sources.ticket_desk import TICKETS, answer

TICKETS_PATH = "scan_pipeline_tests.sources.tickets.Tickets"
DESK: dict[str, Any] = {"adapter": TICKETS_PATH, "url": "http://desk.test", "page_size": 4}
SCAN: dict[str, Any] = {
    "name": "tickets",
    "source": DESK,
    "contract": {"key": ["id"], "consistency": "snapshot"},
}


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Writes modules of a user's project; what was imported and put on the path is undone."""
    before, path = set(sys.modules), list(sys.path)

    def write(name: str, text: str) -> Path:
        file = tmp_path / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        return file

    yield write
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:] = path


def test_adapter_is_walked_to_a_verified_receipt(bench: Any) -> None:
    scan = parse_scan(SCAN)
    workspace = bench.workspace(inner=httpx2.MockTransport(answer))

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.accepted) == ("verified", True)
    assert receipt.records_observed == len(TICKETS)
    assert (receipt.adapter.name, receipt.adapter.revision) == (TICKETS_PATH, "tickets/1")
    assert receipt.merkle.leaf_encoding == "canonical-json/v1"
    rows = Collection(scan, workspace=workspace).latest().frame().collect().sort("id")
    assert rows["id"].to_list() == [number for number, _ in TICKETS]
    assert Audit(scan.name, receipt.scan_generation, workspace=workspace).run().agrees


def test_stored_contract_is_read_as_it_was() -> None:
    scan = parse_scan(SCAN)

    again = parse_scan(json.loads(json.dumps(scan_json(scan))), stored=True)

    assert again == scan
    assert again.source.adapter == AdapterRef(name=TICKETS_PATH, revision="tickets/1")


def test_refusals_are_told_once_and_sends_counted() -> None:
    answers = iter([httpx2.Response(503), httpx2.Response(200, json={"rows": []})])
    asking = Asking(DESK, lambda _: next(answers))

    with pytest.raises(Exception, match="expected columns"):
        asking.fetch()
    assert [each.reason for each in asking.refused] == ["server_error", "records_missing"]

    answers = iter([httpx2.Response(503), httpx2.Response(200, content=b"{")])
    asking = Asking(DESK, lambda _: next(answers))
    with pytest.raises(Exception, match="JSON"):
        asking.fetch()
    assert [each.reason for each in asking.refused] == ["server_error", "body_unparsable"]

    pages = iter([httpx2.Response(503), None])
    asking = Asking(DESK, lambda request: next(pages) or answer(request))
    assert asking.fetch().attempts == 2


class Passing(Adapter[AdapterFacts]):
    """Fails as often as told, for a reason; then answers two records."""

    FACTS = AdapterFacts
    reasons: list[str]

    def ask(self, position: Position) -> Answered:
        del position
        if self.reasons:
            raise TransientSourceError(self.reasons.pop(0), "not this time")
        records = [b'{"id": 1.50, "n": 12345678901234567.89}', {"id": Decimal("2.0")}]
        return Answered(records=records, continuation=End(signal="last"))


def opened(facts: Mapping[str, Any], *reasons: str) -> Asking:
    """Open `Passing` the way a scan does."""
    path = f"{__name__}.Passing"
    asking = Asking({"adapter": path, **facts}, lambda _: httpx2.Response(500))
    asking.source.inner.reasons = list(reasons)
    return asking


def test_revision_of_code_that_declares_none_is_the_digest_of_its_module() -> None:
    expected = f"sha256:{sha256(Path(__file__).read_bytes()).hexdigest()}"

    assert opened({}).source.adapter.revision == expected


def test_records_become_lines_of_canonical_json_whose_numbers_keep_their_value() -> None:
    page = opened({}).fetch()

    assert page.body == b'{"id":1.5,"n":12345678901234567.89}\n{"id":2}'
    assert (page.records, page.attempts) == (2, 1)
    assert list(opened({}).source.records(page.body)) == page.body.split(b"\n")
    assert list(opened({}).source.records(b"")) == []


def test_adapter_that_fails_in_passing_is_asked_again_within_bounds() -> None:
    asking = opened({}, "connection_lost", "connection_lost")
    assert asking.fetch().attempts == 3
    assert [each.reason for each in asking.refused] == ["connection_lost"] * 2

    with pytest.raises(SourceUnavailableError, match="3 sends"):
        opened({}, *["connection_lost"] * 3).fetch()


def test_continuation_that_works_once_is_not_sent_again_after_it_may_be_used_up() -> None:
    once = {"continuation": "single_use"}

    assert opened(once, "not_connected", "wait").fetch("t").attempts == 3
    assert opened(once, "connection_lost").fetch().attempts == 2  # the first page has none
    with pytest.raises(ContinuationConsumedError):
        opened(once, "connection_lost").fetch("t")


@pytest.mark.parametrize(
    ("adapter", "told"),
    [
        ("nowhere.sources.Foo", "cannot be imported"),
        ("Foo", "expected the dotted path"),
        (7, "expected the dotted path"),
        ("scan_pipeline.core.page.Nothing", "holds no Nothing"),
        ("scan_pipeline.core.page.Page", "is no scan_pipeline.adapters.Adapter"),
        ("scan_pipeline.adapters.HttpAdapter", "does not define ask"),
    ],
)
def test_path_that_leads_to_no_adapter_is_a_problem_of_its_field(adapter: Any, told: str) -> None:
    with pytest.raises(ScanFileError) as refused:
        parse_scan({**SCAN, "source": {**DESK, "adapter": adapter}})

    (problem,) = refused.value.problems
    assert problem.at == ("source", "adapter")
    assert told in problem.message


def test_facts_of_an_adapter_are_parsed_strictly() -> None:
    with pytest.raises(ScanFileError) as refused:
        parse_scan({**SCAN, "source": {**DESK, "page_size": 0, "colour": "red"}})

    assert {each.at for each in refused.value.problems} == {
        ("source", "page_size"),
        ("source", "colour"),
    }


def test_protocol_beside_an_adapter_is_refused() -> None:
    with pytest.raises(ScanFileError, match="beside an adapter"):
        parse_scan({**SCAN, "source": {**DESK, "protocol": "offset"}})


MINE = """
from scan_pipeline.adapters import Adapter, AdapterFacts, Answered, End

class Mine(Adapter):
    FACTS = AdapterFacts
    {revision}

    def ask(self, position):
        return Answered(records=[], continuation=End(signal="none"))
"""

FILE = """
name: mine
source: {{adapter: {module}.Mine}}
contract: {{key: [id], consistency: live}}
"""


def test_module_beside_the_scan_file_is_found(
    module: Callable[[str, str], Path], tmp_path: Path
) -> None:
    module("kit_beside", MINE.format(revision=""))
    file = tmp_path / "mine.yaml"
    file.write_text(FILE.format(module="kit_beside"), encoding="utf-8")

    assert read_scan_file(file).parse().source.adapter.name == "kit_beside.Mine"


def test_module_of_the_nearest_project_is_found(
    module: Callable[[str, str], Path], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    module("kit_project", MINE.format(revision=""))
    (tmp_path / "scans").mkdir()
    file = tmp_path / "scans" / "mine.yaml"
    file.write_text(FILE.format(module="kit_project"), encoding="utf-8")

    assert read_scan_file(file).parse().source.adapter.name == "kit_project.Mine"


def test_adapter_that_cannot_be_imported_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(FILE.format(module="kit_nowhere"), encoding="utf-8")

    with pytest.raises(LocatedScanFileError) as refused:
        read_scan_file(file).parse()

    (problem,) = refused.value.located
    assert (problem.line, problem.field) == (3, "source.adapter")


def test_changed_code_is_another_scope_unless_its_revision_is_declared(
    module: Callable[[str, str], Path], tmp_path: Path
) -> None:
    sys.path.append(str(tmp_path))
    scopes = {}
    for name, revision in [("kit_a", ""), ("kit_b", "x = 1"), ("kit_c", "REVISION = 'm/1'")]:
        module(name, MINE.format(revision=revision))
        source = {"adapter": f"{name}.Mine"}
        scan = parse_scan(
            {**SCAN, "source": source, "contract": {"key": ["id"], "consistency": "live"}}
        )
        scopes[name] = scan.source.adapter.revision
        assert scan.source.adapter.revision in json.dumps(scan_json(scan))
        assert scope_digest(scan).startswith("sha256:")

    assert scopes["kit_c"] == "m/1"
    assert len(set(scopes.values())) == 3


END = 'End(signal="null")'
WRONG: Mapping[str, tuple[str, str]] = {
    "no_answer": ('[{"id": "a"}]', "not_a_page"),
    "records_as_text": (f'Answered(records="ab", continuation={END})', "not_a_page"),
    "records_as_object": (f'Answered(records={{"id": "a"}}, continuation={END})', "not_a_page"),
    "no_continuation": ("Answered(records=[], continuation=None)", "continuation_invalid"),
    "text_continuation": ('Answered(records=[], continuation="2")', "continuation_invalid"),
    "number_token": ("Answered(records=[], continuation=Next(token=2))", "continuation_invalid"),
    "half_a_pair": (
        'Answered(records=[], continuation=Next(token="\\ud800"))',
        "continuation_invalid",
    ),
    "end_without_signal": (
        'Answered(records=[], continuation=End(signal=""))',
        "continuation_invalid",
    ),
    "true_as_count": (f"Answered(records=[], continuation={END}, total=True)", "reported_invalid"),
    "text_as_count": (f'Answered(records=[], continuation={END}, total="1")', "reported_invalid"),
    "fraction": (f"Answered(records=[], continuation={END}, remaining=1.0)", "reported_invalid"),
    "count_below_zero": (f"Answered(records=[], continuation={END}, page=-1)", "reported_invalid"),
    "count_beyond": (f"Answered(records=[], continuation={END}, total=2**63)", "reported_invalid"),
    "number_as_pin": (f"Answered(records=[], continuation={END}, pin=7)", "reported_invalid"),
}


@pytest.mark.parametrize("named", WRONG)
def test_what_an_adapter_must_not_hand_over_ends_in_a_failed_receipt(
    bench: Any, module: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    returned, code = WRONG[named]
    file = module(
        f"wrong_{named}",
        "from scan_pipeline.adapters import Adapter, AdapterFacts, Answered, End, Next\n\n\n"
        "class Wrong(Adapter[AdapterFacts]):\n"
        "    FACTS = AdapterFacts\n\n"
        "    def ask(self, position):\n"
        f"        return {returned}\n",
    )
    monkeypatch.syspath_prepend(str(file.parent))
    scan = parse_scan(
        {
            "name": "wrong",
            "source": {"adapter": f"wrong_{named}.Wrong"},
            "contract": {"key": ["id"], "consistency": "live"},
        }
    )

    receipt = run_scan(scan, workspace=bench.workspace()).stored.receipt

    assert (receipt.coverage_status, receipt.refused_responses) == ("failed", 1)
    assert receipt.findings.first[0].code == code


BREAKS: Mapping[str, str] = {
    "ask": '        return {}["sk-secret"]\n',
    "opening": (
        "        return Answered(records=[], continuation=End(signal='last'))\n\n"
        '    def opening(self):\n        raise RuntimeError("sk-secret")\n'
    ),
}


@pytest.mark.parametrize("where", BREAKS)
def test_exception_of_an_adapters_own_code_ends_in_a_failed_receipt_that_names_its_line(
    bench: Any, module: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    file = module(
        f"broken_{where}",
        "from scan_pipeline.adapters import Adapter, AdapterFacts, Answered, End\n\n\n"
        "class Broken(Adapter[AdapterFacts]):\n"
        "    FACTS = AdapterFacts\n\n"
        "    def ask(self, position):\n" + BREAKS[where],
    )
    monkeypatch.syspath_prepend(str(file.parent))
    source = {"adapter": f"broken_{where}.Broken"}
    contract = {"key": ["id"], "consistency": "live"}
    scan = parse_scan({"name": "broken", "source": source, "contract": contract})

    receipt = run_scan(scan, workspace=bench.workspace()).stored.receipt

    assert (receipt.coverage_status, receipt.traversal) == ("failed", "failed")
    told = receipt.findings.first[0]
    assert told.code == "adapter_failed"
    assert re.search(rf"raised \w+Error at line \d+ of broken_{where}.py", told.found or "")
    assert "sk-secret" not in json.dumps(receipt_json(receipt))


@pytest.mark.parametrize(("age", "cached"), [({"age": "30"}, True), ({}, False)])
def test_answer_that_a_cache_gave_an_adapter_is_told(age: Mapping[str, str], cached: bool) -> None:
    def kept(request: httpx2.Request) -> httpx2.Response:
        fresh = answer(request)
        return httpx2.Response(200, headers=age, content=fresh.read())

    assert Asking(DESK, kept).fetch().reported.from_cache is cached


def test_bare_number_as_token_may_be_an_offset_unless_the_facts_say_positions_are_ours() -> None:
    facts = AdapterFacts(adapter=AdapterRef(name="a.B", revision="1"))

    assert [facts.counter_in(each) for each in ("40", "k40")] == ["token", None]
    assert parse_scan(SCAN).source.counter_in("40") is None


def test_opening_of_an_adapter_names_nothing_but_texts() -> None:
    with pytest.raises(ProtocolError, match="change_token that is reported is no text"):
        Opening(change_token=7)  # pyright: ignore[reportArgumentType]


def test_scan_file_does_not_say_which_code_an_adapter_is() -> None:
    forged = {**SCAN, "source": {**DESK, "adapter": {"name": TICKETS_PATH, "revision": "old/1"}}}

    with pytest.raises(ScanFileError, match="expected the dotted path alone"):
        parse_scan(forged)
