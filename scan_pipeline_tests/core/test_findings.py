"""Findings: each known, each produced somewhere, the telling ones first."""

from pathlib import Path

import pytest

import scan_pipeline
from scan_pipeline.core.finding_kinds import KINDS
from scan_pipeline.core.findings import finding, findings_digest, most_telling, worst

PACKAGE = Path(scan_pipeline.__file__).parent


def test_every_code_is_produced_somewhere():
    """A code that nothing produces promises a check that nobody makes."""
    own = PACKAGE / "core" / "findings.py"
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path != own
    )

    assert [code for code in KINDS if f'"{code}"' not in source] == []


@pytest.mark.parametrize("code", KINDS)
def test_kind_says_cause_and_remedy_in_plain_words(code):
    kind = KINDS[code]

    assert kind.severity in {"error", "warning", "note"}
    assert kind.cause
    assert kind.remedy
    assert not {kind.cause[-1], kind.remedy[-1]} & set(".!")


def test_finding_carries_what_its_kind_says():
    told = finding("ids_missing", page=3, expected=1, found="two").as_json()

    assert told == {
        "code": "ids_missing",
        "severity": "error",
        "page": 3,
        "key": None,
        "expected": "1",
        "found": "two",
        "cause": KINDS["ids_missing"].cause,
        "remedy": KINDS["ids_missing"].remedy,
    }


def test_unknown_code_is_a_mistake_of_ours():
    with pytest.raises(KeyError):
        finding("no_such_code")


def test_weight_may_be_said_otherwise():
    assert finding("count_changed", severity="warning").severity == "warning"


@pytest.mark.parametrize(
    ("severities", "heaviest"),
    [((), None), (("note",), "note"), (("note", "error", "warning"), "error")],
)
def test_worst_is_the_heaviest(severities, heaviest):
    assert worst(finding("limit_near", severity=each) for each in severities) == heaviest


def test_telling_ones_come_first():
    """A thousand notes or repeats do not crowd out the one that says what is wrong."""
    told = [
        *(finding("duplicate_allowed", page=n) for n in range(1_000)),
        *(finding("nonconforming", page=n) for n in range(3)),
        finding("count_dropped"),
        *(finding("duplicate_delivery", page=n) for n in range(1_000)),
        finding("ids_missing"),
    ]

    shown = most_telling(told)

    assert len(shown) == 100
    assert [each.code for each in shown[:3]] == [
        "duplicate_delivery",
        "ids_missing",
        "duplicate_delivery",
    ]
    assert [each.page for each in shown[2:4]] == [1, 2]
    assert [each.code for each in most_telling(told[:1_004], at_most=4)] == [
        "count_dropped",
        "duplicate_allowed",
        "nonconforming",
        "duplicate_allowed",
    ]


def test_few_are_all_shown():
    told = [finding("limit_near", page=2), finding("limit_near", page=1)]

    assert most_telling(told) == tuple(told)


def test_digest_depends_on_content_and_order():
    one, two = finding("limit_near", page=1), finding("limit_near", page=2)

    assert findings_digest([one, two]) == findings_digest([one, two])
    assert len({findings_digest(each) for each in ([], [one], [one, two], [two, one])}) == 4
