"""The AWS providers under the kit: three fake services, asked through botocore itself."""

from collections.abc import Sequence

import httpx2
import pytest

from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.testing import BEHAVIOURS, AppBench, Conformance
from scan_pipeline_tests.sources.amazon.wire import (
    ENVIRON,
    KEYS,
    item,
    objects,
    refused,
    sent,
    told,
    users,
    xml,
)

pytestmark = pytest.mark.long

IDS = [f"k-{number:02d}" for number in range(1, 12)]
NAMED = {str(each): each for each in BEHAVIOURS}


def page_after(last: str | None) -> tuple[Sequence[str], str | None]:
    """Return four names after one, and the last of them where more follow."""
    start = 0 if last is None else IDS.index(last) + 1
    names = IDS[start : start + 4]
    return names, names[-1] if start + 4 < len(IDS) else None


def dynamodb(request: httpx2.Request) -> httpx2.Response:
    names, last = page_after(sent(request).get("ExclusiveStartKey", {}).get("id", {}).get("S"))
    follows = {} if last is None else {"LastEvaluatedKey": item(last)}
    return told({"Items": [item(each) for each in names], "Count": len(names), **follows})


def iam(request: httpx2.Request) -> httpx2.Response:
    names, last = page_after(sent(request).get("Marker"))
    return users(names, truncated=last is not None, marker=last)


def s3(request: httpx2.Request) -> httpx2.Response:
    names, last = page_after(sent(request).get("continuation-token"))
    more = f"<IsTruncated>{str(last is not None).lower()}</IsTruncated>"
    token = "" if last is None else f"<NextContinuationToken>{last}</NextContinuationToken>"
    return objects(names, around=f"{more}{token}<KeyCount>{len(names)}</KeyCount>")


SERVICES = {
    "aws_dynamodb": (dynamodb, "id", {"region": "eu-west-1", "params": {"TableName": "t"}}),
    "aws_iam": (iam, "UserName", {}),
    "aws_s3": (s3, "Key", {"region": "eu-west-1", "params": {"Bucket": "bucket"}}),
}


def iam_says(code: str, status: int) -> httpx2.Response:
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>m</Message></Error>"
    return xml(f"<ErrorResponse>{error}</ErrorResponse>", status=status)


def s3_says(code: str, status: int) -> httpx2.Response:
    return xml(f"<Error><Code>{code}</Code><Message>m</Message></Error>", status=status)


ANSWERS = {
    "aws_dynamodb": {
        "throttled": lambda: refused("ProvisionedThroughputExceededException"),
        "unavailable": lambda: refused("InternalServerError", status=500),
    },
    "aws_iam": {
        "throttled": lambda: iam_says("Throttling", 400),
        "unavailable": lambda: iam_says("ServiceUnavailable", 503),
    },
    "aws_s3": {
        "throttled": lambda: s3_says("SlowDown", 503),
        "unavailable": lambda: s3_says("InternalError", 500),
    },
}
"""How they say so; none of them documents that a continuation expires."""


def kit(provider: str) -> Conformance:
    answer, key, facts = SERVICES[provider]
    source = {"provider": provider, "auth": KEYS, "identity": None, **facts}
    contract = {"key": [key], "consistency": "live"}
    answers = {**ANSWERS[provider], "expired": None}
    scan = parse_scan({"name": "things", "source": source, "contract": contract})
    return Conformance(AppBench(scan, lambda: answer, keys=IDS, environ=ENVIRON, answers=answers))


@pytest.mark.parametrize("provider", SERVICES)
def test_aws_behaves(provider: str) -> None:
    kept = kit(provider)
    for name in ("order-undisturbed", "loop-equal_page", "retry-response_lost_single_use"):
        result = kept.run(NAMED[name])
        assert result.verdict == "passed", result


@pytest.mark.long
@pytest.mark.parametrize("provider", SERVICES)
def test_aws_behaves_in_all(provider: str) -> None:
    report = kit(provider).report()

    report.check()
    assert report.passed
