"""Scan files become scans strictly: every problem with its path, and no secret in any of them."""

import json
from datetime import date

import httpx2
import pytest

from scan_pipeline.core.expectations import IdSequence
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.scan import Column
from scan_pipeline.sources.catalogue import ScanFileError, open_source, parse_scan
from scan_pipeline.sources.page_token import PageToken, PageTokenSource
from scan_pipeline.sources.surroundings import Surroundings

SECRET = "gh" + "p_0123456789abcdef"
WRONG_TYPES = [
    ({"contract.key": "customer_id"}, "contract.key"),
    ({"contract.key": []}, "contract.key"),
    ({"contract.limits.pages": "10"}, "contract.limits.pages"),
    ({"contract.limits.pages": 0}, "contract.limits.pages"),
    ({"contract.limits.pages": True}, "contract.limits.pages"),
    ({"contract.limits.seconds": -1}, "contract.limits.seconds"),
    ({"contract.limits.over_count": -0.1}, "contract.limits.over_count"),
    ({"contract.consistency": "eventually"}, "contract.consistency"),
    ({"contract.accept.scope": "everything"}, "contract.accept.scope"),
    ({"contract.accept.nonconforming": -1}, "contract.accept.nonconforming"),
    ({"contract.expect.source_root": "ABC"}, "contract.expect.source_root"),
    ({"contract.expect.id_sequence.last": "total"}, "contract.expect.id_sequence.last"),
    ({"source.page_size.value": 0}, "source.page_size.value"),
    ({"source.params": {"page": 1}}, "source.params.page"),
    ({"source.next.ends_when": []}, "source.next.ends_when"),
    ({"source.next.ends_when": [{"is": "maybe"}]}, "source.next.ends_when"),
    ({"source.count.exactness": "roughly"}, "source.count.exactness"),
    ({"operation": {"restarts": -1}}, "operation.restarts"),
    ({"record_schema": 7}, "record_schema"),
    ({"name": 7}, "name"),
    ({"schedule": {"timezone": "UTC"}}, "schedule.cron"),
    ({"contract.key": ...}, "contract.key"),
    ({"source.url": ...}, "source.url"),
    ({"source.next.at": ...}, "source"),
]


@pytest.fixture
def problems(shipped, edit):
    """Parses the shipped scan, edited, and returns what is wrong by path."""

    def of(edits):
        with pytest.raises(ScanFileError) as refused:
            parse_scan(edit(shipped, edits))
        return {".".join(map(str, p.at)): p.message for p in refused.value.problems}

    return of


def test_shipped_scan_is_read_in_full(shipped):
    scan = parse_scan(shipped)

    assert scan.name == "customers"
    assert isinstance(scan.source, PageTokenSource)
    assert scan.source.next.at == ("page", "next_cursor")
    assert scan.contract.expect.id_sequence == IdSequence(
        field="customer_id", prefix="customer-", first=1, last="count"
    )
    assert scan.contract.accept.scope == "all_records_in_snapshot"
    assert scan.schedule.cron == "0 2 * * *"


def test_inline_schema_is_read(things):
    assert things().record_schema == (
        Column(name="id", type="string", nullable=False),
        Column(name="n", type="int64", nullable=True),
    )


@pytest.mark.parametrize(
    "path",
    [
        "unannounced",
        "source.unannounced",
        "source.next.unannounced",
        "source.page_size.unannounced",
        "source.snapshot.unannounced",
        "source.identity.unannounced",
        "contract.unannounced",
        "contract.limits.unannounced",
        "contract.expect.unannounced",
        "contract.expect.id_sequence.unannounced",
        "contract.accept.unannounced",
        "schedule.unannounced",
        "operation.retries.unannounced",
    ],
)
def test_unknown_field_is_refused_with_its_path(problems, path):
    ((field, message),) = problems({path: 1}).items()
    assert (field, message.partition(";")[0]) == (path, "unknown field")


@pytest.mark.parametrize(("edits", "path"), WRONG_TYPES)
def test_wrong_or_missing_value_is_refused_with_its_path(problems, edits, path):
    """A value that could be of several types is told once for each."""
    told = problems(edits)

    assert told
    assert all(each.startswith(path) for each in told)


def test_everything_that_is_wrong_is_told_at_once(problems):
    told = problems({"source.x": 1, "contract.y": 2, "schedule.cron": 3, "contract.limits.z": 4})

    assert set(told) == {"source.x", "contract.y", "schedule.cron", "contract.limits.z"}


@pytest.mark.parametrize(
    ("edits", "path"),
    [
        ({"source.snapshot": ...}, "contract.consistency"),
        ({"contract.consistency": "high_water_mark"}, "contract.consistency"),
        ({"source.count": ...}, "contract.limits.over_count"),
        ({"source.count.exactness": "estimate"}, "contract.limits.over_count"),
        ({"source.count.means": "page"}, "contract.limits.over_count"),
        ({"source.partition_counts": ...}, "contract.expect.partition_counts"),
        ({"contract.partition_by": ...}, "contract.expect.partition_counts"),
        ({"source.count": ...}, "contract.expect.id_sequence.last"),
        ({"contract.key": ["customer_id", "tenant"]}, "contract.expect.id_sequence.field"),
        ({"contract.mode": "bounded"}, "contract.limits"),
        ({"contract.mode": "sync"}, "contract.mode"),
        ({"record_schema": [{"name": "customer_id", "type": "string"}]}, "record_schema"),
        ({"source.identity.url": "http://elsewhere.test/me"}, "source.identity.url"),
        ({"source.partition_counts.url": "/counts"}, "source.partition_counts.url"),
        ({"source.url": "registry/v1/customers"}, "source.url"),
        ({"source.url": "http://[::1"}, "source.url"),
        ({"contract.denominator": "end_signal"}, "contract.denominator"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(problems, edits, path):
    assert path in problems(edits)


@pytest.mark.parametrize(
    ("edits", "missing"),
    [
        ({"contract.key": ["other"]}, "key field 'other'"),
        ({"contract.partition_by": "region"}, "partition_by 'region'"),
        ({"contract.expect": {"every_record": {"status": "active"}}}, "every_record 'status'"),
    ],
)
def test_field_of_the_contract_that_is_no_column_is_refused(things, edits, missing):
    with pytest.raises(ScanFileError, match=f"record_schema: has no column for {missing}"):
        things(edits)


@pytest.mark.parametrize("source", [None, [], "page_token", {}])
def test_source_is_a_mapping_with_a_protocol(shipped, source):
    with pytest.raises(ScanFileError, match="source"):
        parse_scan({**shipped, "source": source})


def test_unknown_protocol_is_told_with_the_known_ones(problems):
    assert "page_token" in problems({"source.protocol": "carrier_pigeon"})["source.protocol"]


@pytest.mark.parametrize(
    "edits",
    [
        {"source.auth": {"bearer": SECRET}},
        {"source.auth": {"bearer": {"env": SECRET}}},
        {"source.auth": {"bearer": {"token": SECRET}}},
        {"source.auth": {"bearer": {"env": "TOKEN", "value": SECRET}}},
        {"source.auth": SECRET},
        {"source.auth": {"api_key": {"header": "x", "value": SECRET}}},
        {"source.auth": {"api_key": {"header": "x", "value": {"env": SECRET}}}},
        {"source.headers": SECRET},
        {"source.headers": {"authorization": [SECRET]}},
        {"source.page_size": SECRET},
        {"contract.limits.pages": SECRET},
        {"source.url": f"https://user:{SECRET}@registry.test/v1"},
    ],
)
def test_secret_in_the_wrong_place_is_never_shown(shipped, edit, edits):
    with pytest.raises(ScanFileError) as refused:
        parse_scan(edit(shipped, edits))

    assert SECRET not in str(refused.value) + repr(refused.value.problems)


@pytest.mark.parametrize("number", [123456789, 1.5, True])
def test_number_where_a_secret_belongs_is_not_shown(problems, number):
    told = problems({"source.headers": {"x-api-key": number}})

    assert json.dumps(number) not in str(told)


def test_values_that_are_not_json_are_told(shipped, edit):
    with pytest.raises(ScanFileError, match="not plain JSON values"):
        parse_scan(edit(shipped, {"description": date(2026, 11, 30)}))


def test_opening_sends_nothing(things):
    def refuse(request):
        raise AssertionError(f"found {request.url}; expected no request")

    source = open_source(
        things({"source.auth": {"bearer": {"env": "NOT_SET"}}}),
        Surroundings(
            environ={},
            inner=httpx2.MockTransport(refuse),
            clock=lambda: None,
            sleep=lambda _: None,
            retries=Retries(),
        ),
    )

    assert isinstance(source, PageToken)
    source.close()
