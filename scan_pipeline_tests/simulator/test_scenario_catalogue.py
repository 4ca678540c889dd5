import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.scenario import naive_report, registry_for
from scan_pipeline.simulator.scenarios import SCENARIOS, scenario


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_naive_client_says_what_the_catalogue_says(reading, name):
    told = scenario(name)

    report = naive_report(told, reading(registry_for(told)).client, "/v1/customers")

    assert report.sentence == told.naive_claim


def test_page_skipped_while_the_count_matches(reading, numbered):
    told = scenario("page_skipped_count_matches")
    walk = reading(registry_for(told)).walk(**told.query)

    delivered = numbered(*walk)
    assert len(walk) == 88
    assert len(delivered) == walk[0]["collection"]["expected_count"] == 8_742
    assert set(range(1, 8_743)) - set(delivered) == set(range(4_100, 4_200))
    assert len(set(delivered)) == 8_642
    assert all(page["page"]["returned_count"] == len(page["items"]) for page in walk)


def test_rows_move_across_the_cursor_while_the_count_matches(reading, numbered):
    told = scenario("rows_move_across_cursor")
    delivered = numbered(*reading(registry_for(told)).walk(**told.query))

    assert len(delivered) == 1_000
    assert len(set(delivered)) == 950


def test_an_insert_before_the_cursor_is_never_seen(reading, numbered):
    told = scenario("insert_before_cursor")
    walk = reading(registry_for(told)).walk(**told.query)

    assert walk[-1]["collection"]["expected_count"] == 1_003
    assert max(numbered(*walk)) == 1_000


def test_a_mutable_filter_gives_a_set_that_never_existed(reading, numbered):
    told = scenario("mutable_filter")
    walk = reading(registry_for(told)).walk(**told.query)

    counts = [page["collection"]["expected_count"] for page in walk]
    assert len(set(counts)) == 2
    assert len(numbered(*walk)) not in counts


def test_a_bound_keeps_late_comers_out(reading, numbered):
    told = scenario("appended_behind_bound")
    walk = reading(registry_for(told)).walk(**told.query)

    assert numbered(*walk) == list(range(1, 1_001))
    assert {page["collection"]["high_water_mark"] for page in walk} == {1_000}


def test_two_walkers_have_other_cursors_and_another_population(reading, numbered):
    told = scenario("two_walkers")
    reader = reading(registry_for(told))
    first = reader.page()
    second = reader.page()

    assert first["page"]["next_cursor"] != second["page"]["next_cursor"]
    assert [page["collection"]["expected_count"] for page in (first, second)] == [1_000, 999]


def test_an_unknown_scenario_is_an_error():
    with pytest.raises(ContractError, match="page_skipped_count_matches"):
        scenario("page_skiped")
