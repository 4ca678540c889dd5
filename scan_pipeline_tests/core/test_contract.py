"""Contracts: which edit moves which digest, what silence means, and what never shows."""

import json

import pytest

from scan_pipeline.core.contract import Contract, accept_level, whole_scope
from scan_pipeline.core.contract_digests import contract_digests, scope_digest
from scan_pipeline.core.scan import scan_json
from scan_pipeline.sources.catalogue import parse_scan

SCHEMA = "sha256:00"
SHIPPED_RICH = {
    "contract.expect.count": 8_742,
    "contract.expect.every_record": {"tenant": "acme"},
    "source.headers": {"accept": "application/json"},
    "source.params": {"status": "active"},
}


@pytest.fixture
def digests(shipped, edit):
    """Digests of the shipped scan, edited: scope, judgement, operation."""

    def of(edits, *, schema=SCHEMA):
        scan = parse_scan(edit(shipped, {**SHIPPED_RICH, **edits}))
        digest = contract_digests(scan, schema_fingerprint=schema)
        assert digest.scope == scope_digest(scan)
        return {"scope": digest.scope, "judgement": digest.judgement, "operation": digest.operation}

    return of


@pytest.mark.parametrize(
    ("edits", "moved"),
    [
        ({}, set()),
        ({"description": "Another sentence."}, set()),
        ({"source.params": {"status": "closed"}}, {"scope"}),
        ({"source.params": {}}, {"scope"}),
        ({"source.url": "simulator://registry/v1/support_cases"}, {"scope"}),
        ({"source.headers": {"accept": "application/json", "x-view": "2"}}, {"scope"}),
        ({"source.records_at": "rows"}, {"scope"}),
        ({"source.next.ends_when": [{"is": "absent"}]}, {"scope"}),
        ({"source.next.send_as": "after"}, {"scope"}),
        ({"source.snapshot.send_as": "version"}, {"scope"}),
        ({"source.snapshot.basis": "observed"}, {"scope"}),
        ({"source.count.at": "total"}, {"scope"}),
        ({"source.continuation": "single_use"}, {"scope"}),
        (
            {"contract.mode": "bounded", "contract.limits": {"records": 10}},
            {"scope", "operation"},
        ),
        ({"source.page_size.value": 500}, {"operation"}),
        ({"source.auth": {"bearer": {"env": "ANOTHER_TOKEN"}}}, {"operation"}),
        ({"source.network": {"proxy": "none"}}, {"operation"}),
        ({"operation.rate": {"requests": 50, "per_seconds": 60}}, {"operation"}),
        ({"source.auth": {"api_key": {"header": "x-key", "value": {"env": "KEY"}}}}, {"operation"}),
        ({"contract.limits.seconds": 240}, {"operation"}),
        ({"operation.retries": {"attempts": 9}}, {"operation"}),
        ({"operation.restarts": 0}, {"operation"}),
        ({"schedule.cron": "0 3 * * *"}, {"operation"}),
        ({"schedule": ...}, {"operation"}),
        ({"contract.key": ["customer_id", "tenant"], "contract.expect": {}}, {"judgement"}),
        ({"contract.partition_by": "status"}, {"judgement"}),
        ({"contract.consistency": "live"}, {"judgement"}),
        ({"contract.delivery": "at_least_once"}, {"judgement"}),
        (
            {
                "contract.denominator": "end_signal",
                "source.end_signal_basis": "provider_documented",
            },
            {"scope", "judgement"},
        ),
        ({"contract.expect.count": 8_743}, {"judgement"}),
        ({"contract.expect.every_record": {"tenant": "globex"}}, {"judgement"}),
        ({"contract.accept.nonconforming": 1}, {"judgement"}),
    ],
)
def test_edit_moves_the_digest_of_its_block_alone(digests, edits, moved):
    before, after = digests({}), digests(edits)

    assert {block for block in before if before[block] != after[block]} == moved


def test_schema_counts_by_its_content(digests):
    before = digests({})

    assert digests({"record_schema": ...}) == before
    assert {k for k, v in digests({}, schema="sha256:01").items() if v != before[k]} == {
        "judgement"
    }


def test_spelling_of_a_path_moves_nothing(digests):
    before = digests({})

    assert digests({"source.next.at": ["page", "next_cursor"]}) == before


def test_scan_reads_back_from_its_own_json(shipped, edit):
    scan = parse_scan(edit(shipped, SHIPPED_RICH))
    again = parse_scan(json.loads(json.dumps(scan_json(scan))))

    assert again == scan
    assert scan_json(again) == scan_json(scan)


def test_secrets_stay_references_everywhere(shipped, edit, monkeypatch):
    monkeypatch.setenv("REGISTRY_TOKEN", "the secret itself")
    scan = parse_scan(shipped)

    shown = json.dumps(scan_json(scan)) + repr(scan) + str(scan)

    assert "REGISTRY_TOKEN" in shown
    assert "the secret itself" not in shown


@pytest.mark.parametrize(
    ("contract", "level"),
    [
        ({"consistency": "snapshot"}, ("verified", "all_records_in_snapshot")),
        ({"consistency": "high_water_mark"}, ("verified", "all_records_up_to_high_water_mark")),
        (
            {"consistency": "two_equal_walks"},
            ("corroborated", "all_records_present_throughout_both_walks"),
        ),
        ({"consistency": "live"}, ("verified", "all_records_in_snapshot")),
        (
            {"consistency": "live", "accept": {"scope": "records_encountered_in_live_traversal"}},
            ("unknown", "records_encountered_in_live_traversal"),
        ),
        (
            {"consistency": "snapshot", "accept": {"scope": "observed_pages_only"}},
            ("unknown", "observed_pages_only"),
        ),
        (
            {"consistency": "snapshot", "accept": {"status": "corroborated"}},
            ("corroborated", "all_records_in_snapshot"),
        ),
    ],
)
def test_silence_accepts_a_proven_whole_and_no_less(contract, level):
    from pydantic import TypeAdapter

    parsed = TypeAdapter(Contract).validate_json(json.dumps({"key": ["id"], **contract}))

    assert accept_level(parsed) == level


def test_each_consistency_has_its_scope():
    assert whole_scope("live") == "records_encountered_in_live_traversal"
    assert whole_scope("change_token") == "all_records_at_change_token"
