"""`read`: records through the gate, exact, labelled where they are not the whole."""

import csv
import io
import json

import pytest

from scan_pipeline_tests.cli.conftest import CommandLine


def nights(project: CommandLine) -> tuple[str, str]:
    bad, good = (each["generation"] for each in project.json("generations", "shop"))
    return good, bad


def test_newest_whole_generation_is_read_and_the_newer_one_is_told(
    two_nights: CommandLine,
) -> None:
    good, bad = nights(two_nights)

    result = two_nights("read", two_nights.shop, "--format", "json")

    answer = json.loads(result.stdout)
    assert (answer["scan_generation"], answer["given"], answer["total"]) == (good, 300, 300)
    assert len(answer["records"]) == 300
    assert {each["customer_id"] for each in answer["records"]} == {
        f"customer-{number}" for number in range(1, 301)
    }
    assert f"the newer generation {bad} failed: " in result.stderr
    assert "300 of 300 records" in result.stderr


def test_values_are_exact(two_nights: CommandLine) -> None:
    """Decimals keep their digits and stay numbers; integers past 2^53 do not move."""
    text = two_nights("read", two_nights.shop, "--format", "json").stdout
    rows = json.loads(text, parse_float=str)["records"]
    numbers = [row["external_id"] for row in rows]

    assert max(numbers) > 2**53
    assert all(str(row["balance"]).partition(".")[2].__len__() == 2 for row in rows)
    table = list(csv.DictReader(io.StringIO(csv_of(two_nights))))
    assert [row["balance"] for row in table] == [row["balance"] for row in rows]
    assert [int(row["external_id"]) for row in table] == numbers
    assert json.loads(table[0]["address"]) == rows[0]["address"]


def csv_of(project: CommandLine) -> str:
    return project("read", project.shop, "--format", "csv").stdout


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_limit_always_says_of_how_many(two_nights: CommandLine, form: str) -> None:
    result = two_nights("read", two_nights.shop, "--format", form, "--limit", "2")

    assert result.exit_code == 0
    assert "2 of 300 records" in result.stderr
    if form == "csv":
        assert len(result.stdout.splitlines()) == 3


def test_table_shows_twenty_and_says_so(two_nights: CommandLine) -> None:
    result = two_nights("read", two_nights.shop)

    assert "20 of 300 records" in result.stderr
    assert "customer-20 " in result.stdout
    assert "customer-21 " not in result.stdout


def test_failed_generation_opens_to_nobody(two_nights: CommandLine) -> None:
    _, bad = nights(two_nights)

    for wish in ((), ("--accept", "observed_pages_only")):
        result = two_nights("read", two_nights.shop, bad, *wish)

        assert (result.exit_code, result.stdout) == (1, "")
        assert "coverage is failed" in result.stderr


def test_lesser_scope_is_named_and_every_row_says_what_it_is(two_nights: CommandLine) -> None:
    good, _ = nights(two_nights)
    lesser = ("--accept", "observed_pages_only", "--format", "csv", "--limit", "5")

    result = two_nights("read", two_nights.shop, good, *lesser)

    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 5
    assert {row["_coverage_status"] for row in rows} == {"verified"}
    assert {row["_conclusion_scope"] for row in rows} == {"all_records_in_snapshot"}
    assert all(row["_receipt_id"].startswith("sha256:") for row in rows)


def test_contract_of_another_scope_opens_nothing(two_nights: CommandLine) -> None:
    file = two_nights.scan_file("http://127.0.0.1:9", name="shop")
    try:
        result = two_nights("read", file)
    finally:
        address = two_nights.json("receipt", "shop", code=1)["query"]["url"]
        two_nights.scan_file(address.removesuffix("/v1/customers"), name="shop")

    assert (result.exit_code, result.stdout) == (1, "")


def test_whole_and_part_are_not_asked_for_at_once(two_nights: CommandLine) -> None:
    both = ("--at-least", "verified", "--accept", "bounded_view")

    assert two_nights("read", two_nights.shop, *both).exit_code == 2


def test_data_older_than_allowed_is_refused(two_nights: CommandLine) -> None:
    refused = two_nights("read", "shop", "--max-age", "0")

    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert "expected at most 0:00:00" in refused.stderr
    assert two_nights("read", "shop", "--max-age", "48").exit_code == 0
