"""`receipt`, `explain`, `generations` and `findings` of a good night and a bad one after it."""

import base64
import json
import re

import pytest

from scan_pipeline_tests.cli.conftest import CommandLine


def nights(project: CommandLine) -> tuple[str, str]:
    """Return the accepted generation and the failed one."""
    bad, good = (each["generation"] for each in project.json("generations", "shop"))
    return good, bad


def test_generations_are_listed_newest_first(two_nights: CommandLine) -> None:
    bad, good = two_nights.json("generations", "shop")

    assert [(each["state"], each["coverage_status"]) for each in (bad, good)] == [
        ("sealed", "failed"),
        ("sealed", "verified"),
    ]
    assert [(each["accepted"], each["published"]) for each in (bad, good)] == [
        (False, False),
        (True, True),
    ]
    assert (good["records"], good["pages"]) == (300, 3)
    assert "published" in two_nights("generations", "shop").stdout


def test_scan_can_be_named_by_its_file(two_nights: CommandLine) -> None:
    assert two_nights.json("generations", two_nights.shop) == two_nights.json("generations", "shop")


def test_receipt_is_the_newest_by_default_and_exits_as_it_was_judged(
    two_nights: CommandLine,
) -> None:
    good, bad = nights(two_nights)

    newest = two_nights.json("receipt", "shop", code=1)
    named = two_nights.json("receipt", "shop", good)

    assert (newest["scan_generation"], newest["coverage_status"]) == (bad, "failed")
    assert (named["scan_generation"], named["accepted"]) == (good, True)


def test_receipt_in_words_has_what_a_reviewer_asks_for(two_nights: CommandLine) -> None:
    text = two_nights("receipt", "shop").stdout

    for asked in (
        "prove nothing about the whole",
        "failed",
        "customer-101..customer-200",
        "300 of 300 (source count)",
        "unique keys",
        "pin honoured",
        "page_repeated",
        "show the page and this finding to the owner of the source",
        "opens to",
        "sha256:",
        f"{nights(two_nights)[1]}.dsse.json",
    ):
        assert asked in text
    assert re.search(r"a night +\S+ kB stored, \S+ kB as sent", text)
    assert re.search(r"a year +about \S+ MB stored, 365 nights, if it ran daily", text)


def test_raw_receipt_is_the_signed_envelope(two_nights: CommandLine) -> None:
    good, _ = nights(two_nights)

    envelope = json.loads(two_nights("receipt", "shop", good, "--raw").stdout)

    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["subject"][0]["name"] == f"shop/{good}"
    assert len(envelope["signatures"]) == 1


def test_edited_receipt_is_refused(two_nights: CommandLine) -> None:
    good, bad = nights(two_nights)
    folder = two_nights.lake / "receipts" / "shop"
    kept = (folder / f"{bad}.dsse.json").read_bytes()
    try:
        (folder / f"{bad}.dsse.json").write_bytes((folder / f"{good}.dsse.json").read_bytes())
        swapped = two_nights("receipt", "shop", bad)
        listed = two_nights.json("generations", "shop")
    finally:
        (folder / f"{bad}.dsse.json").write_bytes(kept)

    assert (swapped.exit_code, swapped.stdout) == (1, "")
    assert f"is of shop/{good}" in swapped.stderr
    assert listed[0]["coverage_status"] is None
    assert good in listed[0]["problem"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("shop", "20200101T000000Z"), 1),
        (("shop", "../../etc"), 2),
        (("nobody",), 2),
        (("No-Name",), 2),
    ],
)
@pytest.mark.parametrize("command", ["receipt", "explain", "findings", "audit"])
def test_what_is_not_there_is_told(
    two_nights: CommandLine, command: str, arguments: tuple[str, ...], code: int
) -> None:
    result = two_nights(command, *arguments)

    assert (result.exit_code, result.stdout) == (code, "")
    assert "expected" in result.stderr


def test_first_disagreement_is_explained(two_nights: CommandLine) -> None:
    text = two_nights("explain", "shop").stdout
    told = two_nights.json("explain", "shop", code=1)

    first = told["first_disagreement"]
    assert (first["what"], first["page"]) == ("page_repeated", 2)
    assert told["missing_id_ranges"] == ["customer-101..customer-200"]
    for part in ("First disagreement: page repeated", "expected", "found", "what to do"):
        assert part in text
    assert "Why it matters: the evidence disagrees" in text


def test_verified_night_is_explained_by_what_must_be_believed(two_nights: CommandLine) -> None:
    good, _ = nights(two_nights)

    result = two_nights("explain", "shop", good)

    assert result.exit_code == 0
    assert "What must be believed: pin honoured (provider documented)" in result.stdout
    assert two_nights.json("explain", "shop", good)["first_disagreement"] is None


def test_findings_can_be_filtered(two_nights: CommandLine) -> None:
    every = two_nights.json("findings", "shop")
    heavy = two_nights.json("findings", "shop", "--severity", "error")
    repeated = two_nights.json("findings", "shop", "--code", "page_repeated")

    assert [each for each in every if each["severity"] == "error"] == heavy
    assert {each["code"] for each in heavy} >= {"page_repeated", "duplicate_delivery"}
    assert [(each["code"], each["page"]) for each in repeated] == [("page_repeated", 2)]
    text = two_nights("findings", "shop", "--code", "page_repeated").stdout
    assert f"1 of {len(every)} findings" in text


def test_unknown_severity_is_bad_usage(two_nights: CommandLine) -> None:
    assert two_nights("findings", "shop", "--severity", "dire").exit_code == 2
