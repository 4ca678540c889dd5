import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from scan_pipeline.simulator.customers import NEWEST_MIGRATED
from scan_pipeline.simulator.population import SIZES, freeze, json_lines, population
from scan_pipeline.simulator.rows import EPOCH, instant
from scan_pipeline.simulator.support_cases import defect_of

REGISTRY = Path(__file__).parents[2] / "data" / "registry"


@pytest.mark.parametrize("collection", list(SIZES))
def test_generator_makes_the_committed_population_byte_for_byte(collection):
    frozen = gzip.decompress((REGISTRY / f"{collection}.jsonl.gz").read_bytes())

    assert json_lines(collection) == frozen


def test_freezing_twice_gives_equal_files(tmp_path):
    first = [path.read_bytes() for path in freeze(tmp_path)]

    assert [path.read_bytes() for path in freeze(tmp_path)] == first
    assert all(len(content) < 600_000 for content in first)


def test_there_are_8742_customers_numbered_without_a_gap():
    rows = population("customers", 8_742)

    assert [json.loads(row.raw)["customer_id"] for row in rows] == [
        f"customer-{number}" for number in range(1, 8_743)
    ]


@pytest.mark.parametrize("size", [0, 1, 100, 101])
def test_a_smaller_population_is_the_beginning_of_a_larger_one(size):
    assert population("customers", size) == population("customers", 8_742)[:size]


def test_first_pages_look_migrated_while_thousands_of_older_customers_are_not():
    versions = [row.traits.schema_version for row in population("customers", 8_742)]

    assert set(versions[:NEWEST_MIGRATED]) == {3}
    assert Counter(versions)[2] > 4_000
    assert 0 < Counter(versions)[1] < 100


def test_records_hold_what_parsers_lose():
    texts = [row.raw.decode() for row in population("customers", 8_742)]
    records = [json.loads(text, parse_float=Decimal) for text in texts]

    assert all(2**53 < record["external_id"] < 2**63 for record in records)
    assert all(record["balance"].as_tuple().exponent == -2 for record in records)
    assert {type(record["credit_limit"]) for record in records} == {str, type(None)}
    assert any(not record["name"].isascii() for record in records)
    assert any("\\u00e8" in text for text in texts)
    assert any('\\"' in text and "\\n" not in text for text in texts)
    assert set(records[0]["address"]) == {"street", "city", "postcode", "country"}


def test_records_are_compact_json():
    for row in population("customers", 500) + population("support_cases", 500):
        text = row.raw.decode()
        assert "\n" not in text
        assert json.loads(text)["updated_at"] == instant(row.traits.updated)


def test_timestamps_tie_and_never_run_backwards():
    traits = [row.traits for row in population("customers", 8_742)]

    assert max(Counter(t.updated for t in traits).values()) > 100
    assert all(t.created <= t.updated <= EPOCH for t in traits)


def test_regions_are_uneven_and_every_one_is_there():
    counts = Counter(row.traits.region for row in population("customers", 8_742))

    assert set(counts) == {"eu", "us", "apac", "latam", "mea"}
    assert counts["eu"] > 8 * counts["mea"]


def test_a_handful_of_defects_recur_in_the_support_cases():
    counts = Counter(defect_of(number) for number in range(1, 1_201))

    assert len(counts) == 7
    assert min(counts.values()) > 30
    assert counts[None] > 400


def test_a_case_has_the_tenant_and_region_of_its_customer():
    customers = population("customers", 8_742)

    for row in population("support_cases", 1_200):
        record = json.loads(row.raw)
        owner = customers[int(record["customer_id"].removeprefix("customer-")) - 1]
        assert (record["tenant"], record["region"]) == (owner.traits.tenant, owner.traits.region)
