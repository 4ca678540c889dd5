"""What a scan file may say of an operation, and what it may not."""

import json
from typing import Any

import pytest

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline_tests.sources.amazon.wire import ITEMS, KEYS, OBJECTS
from scan_pipeline_tests.sources.over_http import scan_of


@pytest.mark.parametrize(
    "changes",
    [
        {"region": ...},
        {"region": "eu west"},
        {"operation": "ListObjects"},
        {"endpoint_url": "http://user:pass@store.test"},
        {"endpoint_url": "http://store.test/path?x=1"},
        {"endpoint_url": "store.test"},
        {"endpoint_url": "file:///etc"},
        {"identity": {"endpoint_url": "http://u@sts.test"}},
        {"snapshot": {"at": "x", "send_as": "y"}},
        {"high_water_mark": {"at": "x", "send_as": "y"}},
        {"auth": {"profile": "p", **KEYS}},
        {"auth": {"anonymous": True, "role": {"arn": "arn:aws:iam::111122223333:role/R"}}},
        {"auth": {"role": {"arn": "arn:aws:iam::111122223333:user/U"}}},
        {"auth": {"keys": {"access_key_id": "AKIAPASTED", "secret_access_key": "pasted"}}},
        {"page_size": 0},
        {"records_at": "Items[?kind == 'x']"},
        {"records_at": "Items[:10]"},
        {"shows": {"length(Items)": 3}},
        {"colour": "red"},
    ],
)
def test_facts_that_cannot_hold_are_refused_without_showing_secrets(
    changes: dict[str, Any],
) -> None:
    source = {k: v for k, v in {**ITEMS, **changes}.items() if v is not ...}

    with pytest.raises(ScanFileError) as refused:
        scan_of(source)

    assert "pass@" not in str(refused.value)
    assert "pasted" not in str(refused.value)
    assert "AKIAPASTED" not in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"region": "us-west-2"},
        {"endpoint_url": "http://store.test"},
        {"params": {"TableName": "u"}},
        {"operation": "query"},
        {"records_at": "Items"},
        {"binding": "token"},
    ],
)
def test_another_population_is_another_scope(changes: dict[str, Any]) -> None:
    assert scope_digest(scan_of({**ITEMS, **changes})) != scope_digest(scan_of(ITEMS))


@pytest.mark.parametrize("changes", [{"page_size": 5}, {"auth": {"profile": "other"}}])
def test_how_the_work_is_done_is_not_the_scope(changes: dict[str, Any]) -> None:
    assert scope_digest(scan_of({**ITEMS, **changes})) == scope_digest(scan_of(ITEMS))


@pytest.mark.parametrize(
    ("auth", "scheme"),
    [
        ({"profile": "p"}, "profile"),
        (KEYS, "keys"),
        ({"anonymous": True}, "anonymous"),
        ({"role": {"arn": "arn:aws:iam::111122223333:role/R"}}, "chain+role"),
        ({**KEYS, "role": {"arn": "arn:aws:iam::111122223333:role/R"}}, "keys+role"),
    ],
)
def test_way_of_signing_has_a_name_without_a_secret(auth: Any, scheme: str) -> None:
    assert scan_of({**OBJECTS, "auth": auth}).source.auth.scheme == scheme


@pytest.mark.parametrize(
    ("provider", "own"),
    [
        ("aws_dynamodb", {"region": "eu-west-1", "params": {"TableName": "t"}}),
        ("aws_s3", {"region": "eu-west-1", "params": {"Bucket": "bucket"}}),
        ("aws_iam", {}),
    ],
)
def test_provider_leaves_little_to_say(provider: str, own: dict[str, Any]) -> None:
    source = scan_of({"provider": provider, **own}).source

    assert source.protocol == "aws"
    assert source.provider.name == provider
    assert json.dumps(own)
