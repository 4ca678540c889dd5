"""A swing withholds a receipt until a person acknowledges it, and nothing else can be."""

from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.acknowledgement import acknowledgement
from scan_pipeline.core.errors import ContractError, GateClosedError, TamperedError
from scan_pipeline.stages import acknowledge as module
from scan_pipeline.stages.acknowledge import acknowledge
from scan_pipeline.stages.alerting.message import message_of
from scan_pipeline.stages.alerting.nights import last_nights
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import settle_open
from scan_pipeline.store.generations import next_attempt

LIVE = "records_encountered_in_live_traversal"
SWING = {"contract.expect.swing": {"records": 0.1}}
WORD = {"by": "ann", "because": "the merger brought them"}


def records(count: int) -> list[bytes]:
    return [b'{"id":"t%d","n":%d}' % (number, number) for number in range(count)]


@pytest.fixture
def nights(bench: Any) -> Any:
    """Ten records in the first night, and as many as asked for in the second."""

    def walk(second: int, edits: dict[str, Any] | None = None, **later: Any) -> Any:
        first = bench.walk_records([records(10)], {**SWING, **(edits or {})})
        assert first.receipt.accepted
        project = first.workspace.project
        swung = bench.walk_records(
            [records(second)], {**SWING, **(edits or {})}, project=project, **later
        )
        return first, swung

    return walk


def test_swing_is_withheld_until_somebody_takes_it_for_real(
    nights: Any, bench: Any, things: Any
) -> None:
    _, swung = nights(20)
    published = swung.published().height
    withheld, opened = swung.receipt, swung.opens
    alert = message_of("things", last_nights(things(SWING), workspace=swung.workspace))
    stored = acknowledge("things", swung.generation, **WORD, workspace=swung.workspace)
    receipt = stored.receipt
    again = restage(
        things({**SWING, "contract.expect.count": 20}),
        receipt.scan_generation,
        workspace=swung.workspace,
    ).receipt
    rows = swung.collection.latest().frame().collect().height
    later = bench.walk_records([records(21)], SWING, project=swung.workspace.project)

    assert withheld.withheld == ("swing",)
    assert swung.verdict == ("unknown", "observed_pages_only", False)
    assert "withheld" in withheld.statement
    assert "scan-pipeline acknowledge things" in withheld.reasons[-1]
    assert any("; the last accepted generation had 10." in line for line in alert.lines)
    assert (opened.whole, opened.published, published) == (None, 10, 10)
    assert (receipt.coverage_status, receipt.accepted, receipt.withheld) == ("verified", True, ())
    assert receipt.supersedes == swung.night.stored.receipt_id
    assert (receipt.acknowledgement.by, receipt.acknowledgement.because) == tuple(WORD.values())
    assert "ann acknowledged the change from 10 records" in receipt.statement
    assert receipt.merkle == withheld.merkle
    assert {e.name: e.result for e in receipt.expectations}["swing"] == "missed"
    (said,) = swung.workspace.acknowledgements("things").of(
        swung.generation, trust=swung.workspace.trust
    )
    assert (said.receipt_id, said.expected, said.observed) == (receipt.supersedes, 10, 20)
    assert said.reference == receipt.acknowledgement
    assert (again.accepted, again.acknowledgement) == (True, receipt.acknowledgement)
    assert again.judgement_digest != receipt.judgement_digest
    assert rows == 20
    assert later.results["swing"] == "met"
    for each in (swung.generation, receipt.scan_generation, again.scan_generation):
        report = Audit("things", each, workspace=swung.workspace).run()
        assert (report.level, report.disagreements) == ("bodies", ())
    with pytest.raises(GateClosedError, match="expected the receipt that stands"):
        acknowledge("things", swung.generation, **WORD, workspace=swung.workspace)
    with pytest.raises(ContractError, match="nothing else can be acknowledged"):
        acknowledge("things", again.scan_generation, **WORD, workspace=swung.workspace)
    for note in Path(swung.workspace.project.lake).rglob("*.acknowledgements.json"):
        note.unlink()
    report = Audit("things", receipt.scan_generation, workspace=swung.workspace).run()
    assert "acknowledgement" in {each.name for each in report.disagreements} | {
        word for each in report.disagreements for word in each.found.split()
    }


def test_weaker_scan_is_withheld_too(nights: Any) -> None:
    """What a live scan accepts is no reason to believe a swing."""
    edits = {
        "source.snapshot": ...,
        "contract.consistency": "live",
        "contract.accept": {"scope": LIVE},
    }
    _, swung = nights(20, edits)
    partly = swung.opens.partial
    with pytest.raises(GateClosedError):
        swung.collection.partial(swung.generation, accept=LIVE)
    receipt = acknowledge("things", swung.generation, **WORD, workspace=swung.workspace).receipt

    assert swung.verdict == ("unknown", "observed_pages_only", False)
    assert partly == 20
    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
        "unknown",
        LIVE,
        True,
    )


@pytest.mark.parametrize("later", [{"total": 21}, {"edits": {"contract.limits": {"pages": 1}}}])
def test_what_is_wrong_beside_a_swing_is_not_acknowledged(
    bench: Any, nights: Any, later: dict[str, Any]
) -> None:
    """A missed count fails, a limit leaves it unknown: neither is withheld, nor made right."""
    first, _ = nights(10)
    pages = [records(20)] if "total" in later else [records(15), records(20)[15:]]
    edits = {**SWING, **later.pop("edits", {})}
    swung = bench.walk_records(pages, edits, project=first.workspace.project, **later)

    assert not swung.receipt.accepted
    assert swung.receipt.withheld == ()
    with pytest.raises(ContractError, match="not withheld for a swing"):
        acknowledge("things", swung.generation, **WORD, workspace=swung.workspace)
    assert not swung.workspace.acknowledgements("things").generations()


def test_word_that_nobody_signed_is_none(nights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event that names it is data of the lake; what was signed and broke off is carried out."""
    _, swung = nights(20)
    place, scan, stored = swung.workspace, swung.scan, swung.night.stored
    moment = "2026-11-30T02:00:00.000000Z"
    for blank in ({"by": " "}, {"because": ""}):
        with pytest.raises(ContractError, match="who acknowledges the change and why"):
            acknowledgement(stored.receipt, stored.receipt_id, said_at=moment, **{**WORD, **blank})
    forged = acknowledgement(stored.receipt, stored.receipt_id, said_at=moment, **WORD)
    with pytest.raises(TamperedError, match="found no signed acknowledgement"):
        restage(scan, swung.generation, workspace=place, acknowledged=forged)
    left = settle_open(scan, workspace=place).left

    assert [each.generation for each in left] == [next_attempt(swung.generation)]
    with monkeypatch.context() as broken:
        broken.setattr(module, "restage", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            acknowledge("things", swung.generation, **WORD, workspace=place)
    again = acknowledge("things", swung.generation, by="bob", because="me too", workspace=place)
    assert again.receipt.accepted
    assert again.receipt.acknowledgement.by == "ann"


def test_acknowledging_an_older_night_does_not_make_it_the_newest(nights: Any, bench: Any) -> None:
    """Nights of a clock that was set back are attempts of one name; pages say which is newer."""
    _, swung = nights(20)
    project = swung.workspace.project
    newer = bench.walk_records([records(10)], SWING, project=project)

    receipt = acknowledge("things", swung.generation, **WORD, workspace=swung.workspace).receipt
    after = bench.walk_records([records(10)], SWING, project=project)

    assert receipt.accepted
    assert next_attempt(newer.generation) == receipt.scan_generation
    assert newer.published().height == 10
    assert newer.collection.generations()[-2] == receipt.scan_generation
    assert after.results["swing"] == "met"
