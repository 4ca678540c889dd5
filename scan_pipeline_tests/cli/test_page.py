"""`page`: facts of one event, and never what it carries."""

from scan_pipeline_tests.cli.conftest import CommandLine, registry


def test_page_tells_counts_digests_and_times(two_nights: CommandLine) -> None:
    generation = two_nights.json("generations", "shop")[1]["generation"]

    first, second, third = (
        two_nights.json("page", "shop", generation, str(number)) for number in (1, 2, 3)
    )

    assert [each["records"] for each in (first, second, third)] == [100, 100, 100]
    assert first["source_said"]["total"] == 300
    assert first["continuation_in"] is None
    assert first["continuation_out"] == second["continuation_in"]
    assert second["continuation_out"] == third["continuation_in"]
    assert (third["continuation_out"], third["end_signal"]) == (None, "null")
    assert len({each["items_digest"] for each in (first, second, third)}) == 3
    assert first["request_digest"] == third["request_digest"]
    assert "attempts" in two_nights("page", "shop", generation, "1").stdout


def test_repeated_records_show_in_equal_digests(two_nights: CommandLine) -> None:
    generation = two_nights.json("generations", "shop")[0]["generation"]

    first, second = (two_nights.json("page", "shop", generation, number) for number in "12")

    assert first["items_digest"] == second["items_digest"]


def test_neither_token_nor_body_is_shown(two_nights: CommandLine) -> None:
    """What names a token is keyed: another key, another name."""
    generation = two_nights.json("generations", "shop")[1]["generation"]

    facts = two_nights.json("page", "shop", generation, "1")

    assert "customer-1" not in str(facts)
    assert len(facts["continuation_out"]) == 16
    assert not [name for name in facts if name.startswith("cursor")]


def test_refused_answers_of_a_page_are_listed(scan_pipeline: CommandLine) -> None:
    from scan_pipeline.simulator.faults import Failing

    with registry(Failing(page=2, status=429, retry_after_s=0, last_attempt=2)) as url:
        scan_pipeline("run", scan_pipeline.scan_file(url))
    generation = scan_pipeline.json("generations", "shop")[0]["generation"]

    facts = scan_pipeline.json("page", "shop", generation, "2")

    assert facts["attempts"] == 3
    assert facts["refused_answers"] == [{"status": 429, "reason": "wait"}] * 2


def test_page_beyond_the_walk_is_two(two_nights: CommandLine) -> None:
    generation = two_nights.json("generations", "shop")[0]["generation"]

    result = two_nights("page", "shop", generation, "4")

    assert result.exit_code == 2
    assert "3 pages" in result.stderr
