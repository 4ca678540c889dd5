"""8,742 customers as objects, items and users of moto's server, each walked to its receipt."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import polars as pl
import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.population import population
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.amazon.conftest import CUSTOMERS, ENVIRON, FEW, KEYS, SECRET
from scan_pipeline_tests.real.amazon.moto_server import ODD_KEYS
from scan_pipeline_tests.stages.breaking import break_off

pytestmark = pytest.mark.long

LIVE = "records_encountered_in_live_traversal"
HERE = Path(__file__).parent


class Recording(httpx2.BaseTransport):
    """The network, and what went over it."""

    def __init__(self) -> None:
        self._network = httpx2.HTTPTransport()
        self.asked: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(f"{request.url} {request.content.decode()}")
        return self._network.handle_request(request)

    def close(self) -> None:
        self._network.close()


@pytest.mark.parametrize("name", ["bucket_objects", "customer_items", "iam_users"])
def test_file_of_facts_is_one_a_user_could_have_written(name: str) -> None:
    assert read_scan_file(HERE / f"{name}.yaml").parse().source.protocol == "aws"


ROLES = {
    "source.operation": "list_roles",
    "contract.key": ["RoleName"],
    "record_schema": None,
    "source.page_size": 60,
}
"""moto answers list_users in one page whatever is asked for; roles it pages."""

KINDS = [
    pytest.param("bucket_objects", "customers/customer-{}", {}, id="objects"),
    pytest.param("customer_items", "customer-{}", {"source.page_size": 100}, id="items"),
    pytest.param("iam_users", "customer-{}", {}, id="users"),
    pytest.param("iam_users", "customer-{}", ROLES, id="roles"),
]


@dataclass(frozen=True)
class Walks:
    """Walks customers of a server and holds the receipt, the gate and the audit against them."""

    scan_of: Callable[..., Scan]
    place: Workspace
    folder: Path

    def met(self, url: str, size: int, name: str, key: str, edits: Mapping[str, Any]) -> Receipt:
        manifest = self.folder / "keys.jsonl"
        keys = [json.dumps(key.format(number)) for number in range(1, size + 1)]
        manifest.write_text("\n".join(keys), encoding="utf-8")
        scan = self.scan_of(name, url, {**edits, "contract.expect": {"manifest": str(manifest)}})
        receipt = run_scan(scan, workspace=self.place).stored.receipt

        assert (receipt.traversal, receipt.coverage_status, receipt.conclusion_scope) == (
            "finished",
            "unknown",
            LIVE,
        )
        assert receipt.accepted
        assert receipt.unique_ids_observed == receipt.records_observed == size
        assert {each.name: each.result for each in receipt.expectations} == {"manifest": "met"}
        assert {f.code for f in receipt.findings.first if f.severity != "note"} == {
            "live_traversal"
        }
        assert receipt.extraction.nonconforming == 0
        assert receipt.merkle.leaf_encoding == "canonical-json/v1"
        assert receipt.identity.before == receipt.identity.after
        collection = Collection(scan, workspace=self.place)
        with pytest.raises(GateClosedError):
            collection.latest(at_least="corroborated")
        partial = collection.partial(receipt.scan_generation, accept=LIVE).labelled_frame()
        assert partial.select(pl.len()).collect().item() == size
        assert Audit(scan.name, receipt.scan_generation, workspace=self.place).run().agrees
        assert (receipt.empty_pages > 0) == (name == "customer_items")
        assert SECRET not in repr(receipt)
        return receipt


@pytest.fixture
def walks(scan_of: Callable[..., Scan], place: Workspace, tmp_path: Path) -> Walks:
    return Walks(scan_of=scan_of, place=place, folder=tmp_path)


@pytest.mark.parametrize(("name", "key", "edits"), KINDS)
def test_every_customer_is_met_and_no_more_is_claimed(
    moto: str, walks: Walks, name: str, key: str, edits: Mapping[str, Any]
) -> None:
    """All are there, and nothing held them still: the receipt says so, and so does the gate."""
    walks.met(moto, FEW, name, key, edits)


@pytest.mark.long
@pytest.mark.parametrize(("name", "key", "edits"), KINDS)
def test_all_of_8742_customers_are_met(
    whole_moto: str, walks: Walks, name: str, key: str, edits: Mapping[str, Any]
) -> None:
    as_written = {path: value for path, value in edits.items() if path != "source.page_size"}

    walks.met(whole_moto, CUSTOMERS, name, key, as_written)


def test_empty_pages_in_a_row_have_a_budget(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    """A filter that nothing meets would read a whole table for nothing."""
    scan = scan_of(
        "customer_items",
        moto,
        {"source.params.ExpressionAttributeValues": {":kind": {"S": "none"}}}
        | {"source.page_size": 100, "contract.limits.empty_pages": 3},
    )

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert (receipt.stop_reason, receipt.limits_hit) == ("limit_reached", ("empty_pages",))
    assert receipt.pages_observed == 4


@pytest.mark.parametrize(
    "kind",
    [
        ("bucket_objects", {"source.page_size": 60}, "continuation-token"),
        ("customer_items", {"source.page_size": 100}, "ExclusiveStartKey"),
        ("iam_users", ROLES, "Marker"),
    ],
)
def test_walk_that_was_killed_goes_on_from_its_stored_token(
    moto: str,
    scan_of: Callable[..., Scan],
    place: Workspace,
    kind: tuple[str, Mapping[str, Any], str],
) -> None:
    """A new process asks for no page twice but the last one."""
    name, edits, token = kind
    scan = scan_of(name, moto, {**edits, "operation": {"commit_pages": 1}})
    break_off(scan, place, after=3)
    wire = Recording()

    night = run_scan(scan, workspace=Workspace(place.project, environ=ENVIRON, inner=wire))

    receipt = night.stored.receipt
    assert (receipt.traversal, receipt.unique_ids_observed) == ("finished", FEW)
    pages = [each for each in wire.asked if "GetCallerIdentity" not in each]
    assert len(pages) == receipt.pages_observed - 2
    assert all(token in each for each in pages)
    wire.close()


def test_group_list_without_its_flag_is_no_end_unless_declared(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    """moto leaves IsTruncated out of list_groups, where IAM documents it."""
    groups = {
        "source.operation": "list_groups",
        "contract.key": ["GroupName"],
        "record_schema": None,
    }

    strict = run_scan(scan_of("iam_users", moto, groups), workspace=place).stored.receipt
    told = {**groups, "source.flag_omitted_when_false": True}
    declared = run_scan(scan_of("iam_users", moto, told), workspace=place).stored.receipt

    assert strict.coverage_status == "failed"
    assert "continuation_missing" in {f.code for f in strict.findings.first}
    assert (declared.traversal, declared.records_observed) == ("finished", 1)


def test_sts_says_who_walks_and_the_scan_file_may_insist(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    us = "arn:aws:sts::123456789012:user/moto"
    ours = scan_of("iam_users", moto, {"source.identity": {"expect": us}})
    other = scan_of("iam_users", moto, {"source.identity": {"expect": f"{us}-2"}})

    walked = run_scan(ours, workspace=place).stored.receipt
    refused = run_scan(other, workspace=place).stored.receipt

    assert walked.identity.before.principal == us
    assert walked.statement.endswith(f"as visible to {us} of tenant 123456789012.")
    assert "principal_changed" in {f.code for f in refused.findings.first}
    assert refused.pages_observed == 0


def test_role_is_assumed_and_told_without_its_session(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    role = "arn:aws:iam::123456789012:role/customer-1"
    scan = scan_of("iam_users", moto, {"source.auth": {**KEYS, "role": {"arn": role}}})

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert receipt.identity.before.principal == "arn:aws:sts::123456789012:assumed-role/customer-1"
    assert receipt.traversal == "finished"


def test_items_of_a_table_are_read_exactly(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    scan = scan_of(
        "customer_items",
        moto,
        {"source.params.FilterExpression": "customer_id = :kind"}
        | {"source.params.ExpressionAttributeValues": {":kind": {"S": "customer-7"}}}
        | {"source.page_size": 5000},
    )

    receipt = run_scan(scan, workspace=place).stored.receipt

    rows = Collection(scan, workspace=place).partial(receipt.scan_generation, accept=LIVE)
    (row,) = rows.labelled_frame().collect().to_dicts()
    source = json.loads(population("customers", 7)[6].raw, parse_float=str)
    assert row["external_id"] == source["external_id"]
    assert str(row["balance"]).rstrip("0") == source["balance"].rstrip("0")
    assert json.loads(row["tags"]) == {"SS": sorted(source["tags"])}
    assert json.loads(row["address"]) == source["address"]


def test_keys_come_as_they_are_named_whatever_url_and_xml_make_of_them(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    scan = scan_of("bucket_objects", moto, {"source.params.Prefix": "odd/", "source.page_size": 2})

    receipt = run_scan(scan, workspace=place).stored.receipt

    rows = Collection(scan, workspace=place).partial(receipt.scan_generation, accept=LIVE)
    assert set(rows.labelled_frame().collect()["Key"]) == set(ODD_KEYS)


def test_common_prefixes_beside_the_objects_are_told(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    """A delimiter rolls 306 keys up into two prefixes; none of them is walked."""
    scan = scan_of(
        "bucket_objects",
        moto,
        {"source.params": {"Bucket": "customers", "Delimiter": "/"}, "record_schema": None},
    )

    receipt = run_scan(scan, workspace=place).stored.receipt

    (told,) = [f for f in receipt.findings.first if f.code == "other_results"]
    assert (told.severity, told.found) == ("warning", "2 at CommonPrefixes")
    assert receipt.records_observed == 0


def test_prefixes_that_are_left_out_on_purpose_are_not(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    scan = scan_of(
        "bucket_objects",
        moto,
        {
            "source.params": {"Bucket": "customers", "Delimiter": "/"},
            "source.leaves_out": ["CommonPrefixes"],
            "record_schema": None,
        },
    )

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert receipt.traversal == "finished"
    assert "other_results" not in {f.code for f in receipt.findings.first}


def test_common_prefixes_can_be_what_is_walked(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    scan = scan_of(
        "bucket_objects",
        moto,
        {
            "source.params": {"Bucket": "customers", "Delimiter": "/"},
            "source.records_at": "CommonPrefixes",
            "contract.key": ["Prefix"],
            "record_schema": None,
        },
    )

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert (receipt.traversal, receipt.records_observed) == ("finished", 2)


def test_bucket_that_is_not_there_fails_the_walk_and_leaves_a_receipt(
    moto: str, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    scan = scan_of("bucket_objects", moto, {"source.params.Bucket": "elsewhere"})

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert receipt.coverage_status == "failed"
    assert "request_rejected" in {f.code for f in receipt.findings.first}
