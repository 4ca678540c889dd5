"""Operations of AWS over scripted answers: how they advance, end, and what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ContinuationConsumedError,
    ContractError,
    DestinationRefusedError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
    TimeLimitError,
)
from scan_pipeline.core.page import End, Next, Opening
from scan_pipeline.core.scan import scan_json
from scan_pipeline.sources.aws import without_session
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline_tests.sources.amazon.wire import (
    AWS,
    ENVIRON,
    ITEMS,
    KEYS,
    NAMES,
    OBJECTS,
    USERS,
    VERSIONS,
    caller,
    in_turn,
    item,
    objects,
    refused,
    sent,
    told,
    users,
    xml,
)
from scan_pipeline_tests.sources.over_http import Asking, Walked, scan_of, walk


def asking(source: Any, *answers: Any, **blocks: Any) -> Asking:
    return Asking(source, in_turn(*answers), environ=ENVIRON, **blocks)


def walked(source: Any, folder: Path, *answers: Any, key: str = "id", **contract: Any) -> Walked:
    facts = {"key": [key], "consistency": "live", **contract}
    once = {"restarts": 0}
    return walk(source, in_turn(*answers), folder, environ=ENVIRON, contract=facts, operation=once)


# how they advance


def test_scan_goes_on_after_an_empty_page_and_ends_by_no_key(tmp_path: Path) -> None:
    key = {"id": {"B": "AP8="}, "n": {"N": "7"}}
    came = walked(
        ITEMS,
        tmp_path,
        told({"Items": [item("a"), item("b")], "LastEvaluatedKey": key}),
        told({"Items": [], "LastEvaluatedKey": item("b")}),
        told({"Items": [item("c")]}),
    )

    assert came.keys == ["a", "b", "c"]
    assert [sent(each).get("ExclusiveStartKey") for each in came.requests] == [None, key, item("b")]
    assert came.receipt.empty_pages == 1
    assert came.receipt.terminal_evidence.signal == "absent"
    assert came.verdict == ("finished", "unknown", "records_encountered_in_live_traversal")


def test_versions_go_on_with_both_markers(tmp_path: Path) -> None:
    more = "<IsTruncated>true</IsTruncated><NextKeyMarker>b%2Bc</NextKeyMarker>"
    version = "<NextVersionIdMarker>v1</NextVersionIdMarker>"
    end = "<IsTruncated>false</IsTruncated>"

    def page(keys: list[str], around: str) -> httpx2.Response:
        encoding = "<EncodingType>url</EncodingType>"
        return objects(keys, root="ListVersionsResult", kind="Version", around=encoding + around)

    came = walked(
        VERSIONS,
        tmp_path,
        page(["a%20a"], more + version),
        page(["b%2Bc"], more.replace("b%2Bc", "d")),
        page(["e"], end),
        key="Key",
    )

    assert came.keys == ["a a", "b+c", "e"]
    first, second, third = (sent(each) for each in came.requests)
    assert {"key-marker", "version-id-marker"}.isdisjoint(first)
    assert (second["key-marker"], second["version-id-marker"]) == ("b+c", "v1")
    assert third["key-marker"] == "d"
    assert "version-id-marker" not in third


LISTING = {**OBJECTS, "operation": "list_objects"}


def test_marker_taken_from_the_last_key_goes_on_and_is_no_contradiction_at_the_end() -> None:
    """ListObjects names NextMarker only where there is a delimiter."""
    here = asking(
        LISTING,
        objects(["a", "b"], around="<IsTruncated>true</IsTruncated>"),
        objects(["c"], around="<IsTruncated>false</IsTruncated>"),
        objects([], around="<IsTruncated>false</IsTruncated><NextMarker>d</NextMarker>"),
    )

    assert here.fetch().continuation == Next(token='{"Marker":"b"}')
    assert here.fetch('{"Marker":"b"}').continuation == End(signal="false")
    with pytest.raises(ProtocolError) as failed:
        here.fetch('{"Marker":"c"}')
    assert failed.value.code == "end_signals_disagree"


@pytest.mark.parametrize(
    ("truncated", "marker", "code"),
    [
        (True, None, "end_signals_disagree"),
        (True, "", "end_signals_disagree"),
        (False, "m", "end_signals_disagree"),
        (None, None, "continuation_missing"),
        (None, "m", "continuation_missing"),
    ],
)
def test_flag_and_token_that_do_not_agree_fail(
    truncated: bool | None, marker: str | None, code: str, tmp_path: Path
) -> None:
    came = walked(USERS, tmp_path, users(["a"], truncated=truncated, marker=marker), key="UserName")

    assert came.verdict[:2] == ("failed", "failed")
    assert code in came.codes
    assert came.keys == []


def test_one_of_flag_and_token_can_be_binding() -> None:
    flag = {**USERS, "binding": "more_results"}
    token = {**USERS, "binding": "token"}
    odd = users(["a"], truncated=False, marker="m")

    assert asking(flag, odd).fetch().continuation == End(signal="false")
    assert asking(token, odd).fetch().continuation == Next(token='{"Marker":"m"}')


def test_page_shorter_than_asked_for_goes_on_while_the_flag_says_so(tmp_path: Path) -> None:
    came = walked(
        {**USERS, "page_size": 100},
        tmp_path,
        users(["a"], truncated=True, marker="m"),
        users([], truncated=True, marker="n"),
        users(["b"], truncated=False),
        key="UserName",
    )

    assert came.keys == ["a", "b"]
    assert [sent(each).get("Marker") for each in came.requests] == [None, "m", "n"]
    assert {sent(each)["MaxItems"] for each in came.requests} == {"100"}


@pytest.mark.parametrize("tokens", [["x", "x"], ["x", "y", "x"]])
def test_token_that_comes_again_fails(tokens: list[str], tmp_path: Path) -> None:
    """botocore's own loop notices the first of these and not the second."""
    pages = [
        told({"Parameters": [{"Name": f"p{n}"}], "NextToken": each})
        for n, each in enumerate(tokens)
    ]

    came = walked(NAMES, tmp_path, *pages, key="Name")

    assert came.verdict[0] == "failed"
    assert "cursor_repeated" in came.codes
    assert len(came.requests) == len(tokens)


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        ({"Parameters": [], "NextToken": ""}, "empty_string"),
        ({"Parameters": [], "NextToken": None}, "absent"),
        ({"Parameters": []}, "absent"),
    ],
)
def test_token_that_is_none_is_the_end_where_there_is_no_flag(body: Any, signal: str) -> None:
    assert asking(NAMES, told(body)).fetch().continuation == End(signal=signal)


def test_key_without_attributes_is_neither_an_end_nor_a_way_on() -> None:
    with pytest.raises(ProtocolError) as failed:
        asking(ITEMS, told({"Items": [], "LastEvaluatedKey": {}})).fetch()

    assert failed.value.code == "continuation_invalid"


def test_key_that_makes_no_request_is_told_without_showing_it() -> None:
    here = asking(ITEMS, told({"Items": []}))

    with pytest.raises(ProtocolError) as failed:
        here.fetch('{"ExclusiveStartKey":{"quoted-token":{"S":5}}}')

    assert failed.value.code == "continuation_invalid"
    assert "quoted-token" not in str(failed.value)
    assert here.requests == []


# what a page is


@pytest.mark.parametrize(
    ("source", "answer", "code"),
    [
        (ITEMS, told({"Count": 0}), "records_missing"),
        (ITEMS, told({"Items": {}}), "body_unparsable"),
        (ITEMS, told({"Items": "none"}), "body_unparsable"),
        (ITEMS, told({"Items": ["ab"]}), "body_unparsable"),
        (ITEMS, told(b"<html>Sign in</html>"), "body_unparsable"),
        (ITEMS, told(b'{"Items": ['), "body_unparsable"),
        (ITEMS, told(b"[]"), "body_unparsable"),
        (ITEMS, told(b'{"Items":[{"id":{"S":"a"}}],"Items":[]}'), "member_doubled"),
        (ITEMS, told({"Items": [{"id": {"S": "a", "N": "1"}}]}), "body_unparsable"),
        (ITEMS, told({"Items": [{"id": {"N": "one"}}]}), "body_unparsable"),
        (OBJECTS, xml("<html><body>Sign in</body></html>"), "continuation_missing"),
        (OBJECTS, objects([], around="<IsTruncated>true</IsTruncated>" * 2), "member_doubled"),
        (USERS, xml("<html><body>Sign in</body></html>"), "body_unparsable"),
        (USERS, xml("<ListUsersResponse><ListUsersResult>"), "body_unparsable"),
    ],
)
def test_answer_that_is_no_page_fails_whatever_its_status_says(
    source: Any, answer: httpx2.Response, code: str
) -> None:
    here = asking(source, answer)

    with pytest.raises(ProtocolError) as failed:
        here.fetch()

    assert failed.value.code == code
    assert [each.reason for each in here.refused] == [code]


@pytest.mark.parametrize(
    "answer",
    [
        xml("<Error><Code>InternalError</Code></Error>"),
        xml("<ListBucketResult><IsTruncated>false"),
    ],
)
def test_error_or_cut_answer_of_s3_with_status_200_is_asked_for_again(
    answer: httpx2.Response,
) -> None:
    """S3 documents both; botocore makes them a 500."""
    here = asking(OBJECTS, answer, objects(["a"], around="<IsTruncated>false</IsTruncated>"))

    assert here.fetch().attempts == 2
    assert [each.reason for each in here.refused] == ["server_error"]


def test_flattened_list_has_no_other_way_to_be_empty() -> None:
    page = asking(OBJECTS, objects([], around="<IsTruncated>false</IsTruncated>")).fetch()

    assert (page.records, page.continuation) == (0, End(signal="false"))


def test_list_left_out_when_empty_has_to_be_declared() -> None:
    page = asking({**NAMES, "records_omitted_when_empty": True}, told({})).fetch()

    assert (page.records, page.continuation) == (0, End(signal="absent"))


def test_count_is_held_against_its_page_and_never_the_whole(tmp_path: Path) -> None:
    count = {"at": "Count", "means": "page", "exactness": "exact"}
    short = told({"Items": [item("a")], "Count": 2})

    came = walked({**ITEMS, "count": count}, tmp_path, short)

    assert "page_short_of_its_count" in came.codes
    assert came.receipt.records_expected is None


def test_count_of_a_page_covers_what_is_not_walked() -> None:
    prefixes = "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
    around = f"<IsTruncated>false</IsTruncated><KeyCount>3</KeyCount>{prefixes}"
    count = {"at": "KeyCount", "means": "page", "exactness": "exact"}

    for more in ({}, {"leaves_out": ["CommonPrefixes"]}):
        page = asking({**OBJECTS, "count": count, **more}, objects(["a", "b"], around=around))
        assert page.fetch().reported.page == 2


def test_other_kinds_beside_an_empty_page_are_told(tmp_path: Path) -> None:
    prefixes = "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>" * 2
    around = f"<IsTruncated>false</IsTruncated>{prefixes}"

    came = walked(OBJECTS, tmp_path, objects([], around=around), key="Key")

    assert came.codes == {"live_traversal", "no_denominator", "other_results"}
    told_of = next(f for f in came.receipt.findings.first if f.code == "other_results")
    assert (told_of.page, told_of.found) == (1, "2 at CommonPrefixes")


def test_bare_texts_need_a_name() -> None:
    tables = {**AWS, "service": "dynamodb", "operation": "list_tables"}
    answer = told({"TableNames": ["a", "b"]})

    with pytest.raises(ProtocolError, match="record_field"):
        asking(tables, answer).fetch()
    page = asking({**tables, "record_field": "name"}, answer)
    assert page.source.records(page.fetch().body) == [b'{"name":"a"}', b'{"name":"b"}']


def test_records_may_lie_inside_what_the_pages_are_made_of() -> None:
    instances = {
        **AWS,
        "service": "ec2",
        "operation": "describe_instances",
        "records_at": "Reservations[].Instances[]",
    }
    inner = "<instancesSet><item><instanceId>i-1</instanceId></item></instancesSet>"
    answer = f"<reservationSet><item>{inner}</item><item>{inner}</item></reservationSet>"
    here = asking(
        instances, xml(f"<DescribeInstancesResponse>{answer}</DescribeInstancesResponse>")
    )

    page = here.fetch()

    assert page.records == 2
    assert list(here.source.beside(page.body)) == []


def test_answer_of_another_scope_is_refused() -> None:
    """Case C081: one account's answer under another name."""
    source = {**NAMES, "shows": {"Parameters[0].Name": "mine"}}

    assert asking(source, told({"Parameters": [{"Name": "mine"}]})).fetch().records == 1
    with pytest.raises(ProtocolError) as failed:
        asking(source, told({"Parameters": [{"Name": "another's"}]})).fetch()
    assert failed.value.code == "request_changed"


# the scan file against the models


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"service": "dynamodbb"}, "does not know"),
        ({"operation": "scann"}, "does not have"),
        ({"operation": "describe_table"}, "has no paginator"),
        ({"params": {"TableName": "t", "Colour": "red"}}, "params.Colour"),
        ({"params": {"TableName": "t", "ExclusiveStartKey": {}}}, "ExclusiveStartKey in params"),
        ({"params": {"TableName": "t", "Limit": 5}}, "Limit in params"),
        ({"leaves_out": ["Prefixes"]}, "Prefixes in leaves_out"),
        ({"paginator": {"input_token": "a", "output_token": "b", "result_key": "c"}}, "has one"),
    ],
)
def test_scan_file_is_held_against_the_models_before_anything_is_asked(
    changes: dict[str, Any], expected: str
) -> None:
    here = asking({**ITEMS, **changes}, told({"Items": []}))

    with pytest.raises(ContractError, match=expected):
        here.source.opening()

    assert here.requests == []


def test_operation_that_lists_several_kinds_needs_the_one_to_walk() -> None:
    here = asking({**OBJECTS, "records_at": None}, objects([]))

    with pytest.raises(ContractError, match=r"lists \['Contents', 'CommonPrefixes'\]"):
        here.source.opening()


def test_keys_are_not_left_encoded_by_asking_for_it() -> None:
    params = {"Bucket": "bucket", "EncodingType": "url"}

    with pytest.raises(ContractError, match="EncodingType in params"):
        asking({**OBJECTS, "params": params}, objects([])).source.opening()


def test_operation_without_a_paginator_can_be_told_how_it_advances(tmp_path: Path) -> None:
    """IAM's GetAccountAuthorizationDetails has one; Cost Explorer's GetCostAndUsage has none."""
    costs = {
        **AWS,
        "service": "ce",
        "operation": "get_cost_and_usage",
        "params": {
            "TimePeriod": {"Start": "2026-11-01", "End": "2026-11-30"},
            "Granularity": "DAILY",
            "Metrics": ["UnblendedCost"],
        },
        "paginator": {
            "input_token": "NextPageToken",
            "output_token": "NextPageToken",
            "result_key": "ResultsByTime",
        },
    }

    def day(start: str) -> dict[str, Any]:
        return {"TimePeriod": {"Start": start, "End": start}, "Estimated": False}

    came = walked(
        costs,
        tmp_path,
        told({"ResultsByTime": [day("2026-11-01")], "NextPageToken": "x"}),
        told({"ResultsByTime": [day("2026-11-02")]}),
        key="TimePeriod.Start",
    )

    assert came.keys == ["2026-11-01", "2026-11-02"]
    assert sent(came.requests[1])["NextPageToken"] == "x"


def test_missing_extra_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scan_pipeline.sources.amazon.client", raising=False)
    monkeypatch.setitem(sys.modules, "botocore", None)
    here = asking(ITEMS, told({"Items": []}))

    with pytest.raises(ConfigurationError, match=r"botocore.*pip install 'scan-pipeline\[aws\]'"):
        here.source.opening()


# refusals


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "SlowDown"]
)
def test_throttling_is_waited_out_and_each_refusal_told(code: str) -> None:
    here = asking(ITEMS, refused(code), refused(code), told({"Items": [item("a")]}))

    page = here.fetch()

    assert (page.attempts, len(here.requests)) == (3, 3)
    assert [(each.status, each.reason) for each in here.refused] == [(400, "wait")] * 2
    assert len(here.slept) == 2


@pytest.mark.parametrize("after", ["7", "Mon, 30 Nov 2026 02:00:07 GMT"])
def test_wait_that_is_asked_for_is_kept(after: str) -> None:
    slow = refused("SlowDown", status=503, headers={"Retry-After": after})
    here = asking(ITEMS, slow, told({"Items": []}))

    here.fetch()

    assert here.slept == [7.0]
    assert here.source.waited == 7.0


@pytest.mark.parametrize("source", [USERS, ITEMS, OBJECTS])
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("body", [b"", b"<html><h1>Slow down</h1>", b"upstream is busy"])
def test_refusal_of_what_stands_between_is_waited_out(
    source: Any, status: int, body: bytes
) -> None:
    """A proxy answers in no protocol of AWS: its status says what it means, its wait is kept."""
    busy = httpx2.Response(status, content=body, headers={"Retry-After": "3"})
    here = asking(source, busy, refused("AccessDenied", status=403))

    with pytest.raises(AccessRefusedError):
        here.fetch()

    assert [(each.status, each.reason) for each in here.refused][:1] == [(status, "wait")]
    assert here.slept == [3.0]


def test_only_one_layer_sends_again() -> None:
    here = asking(ITEMS, refused("InternalServerError", status=500))

    with pytest.raises(SourceUnavailableError, match="3 sends of one request"):
        here.fetch()

    assert len(here.requests) == len(here.refused) == 3


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        (httpx2.ConnectError("x"), "not_connected"),
        (httpx2.ReadTimeout("x"), "connection_lost"),
        (told({"Items": []}, headers={"x-amz-crc32": "1"}), "connection_lost"),
    ],
)
def test_answer_that_was_lost_or_damaged_is_asked_for_again(failing: Any, reason: str) -> None:
    here = asking(ITEMS, failing, told({"Items": [item("a")]}))

    assert here.fetch().records == 1
    assert [each.reason for each in here.refused] == [reason]


def test_lost_answer_to_a_token_that_works_once_is_not_asked_for_again() -> None:
    here = asking({**NAMES, "continuation": "single_use"}, httpx2.ReadTimeout("x"))

    with pytest.raises(ContinuationConsumedError):
        here.fetch('{"NextToken":"t"}')

    assert len(here.requests) == 1


TOKEN = '{"ExclusiveStartKey":{"id":{"S":"a"}}}'


@pytest.mark.parametrize(
    ("code", "status", "token", "expected", "reason"),
    [
        ("AccessDeniedException", 400, None, AccessRefusedError, "access_refused"),
        ("ExpiredTokenException", 400, TOKEN, AccessRefusedError, "access_refused"),
        ("UnrecognizedClientException", 400, None, AccessRefusedError, "access_refused"),
        ("SomethingElse", 403, None, AccessRefusedError, "access_refused"),
        ("ValidationException", 400, TOKEN, SnapshotExpiredError, "expired"),
        ("ValidationException", 400, None, ProtocolError, "rejected"),
        ("ExpiredNextTokenException", 400, TOKEN, SnapshotExpiredError, "expired"),
        ("ResourceNotFoundException", 400, TOKEN, ProtocolError, "rejected"),
    ],
)
def test_error_codes_end_a_walk_as_what_they_mean(
    code: str, status: int, token: str | None, expected: type[Exception], reason: str
) -> None:
    here = asking(ITEMS, refused(code, status=status))

    with pytest.raises(expected) as ended:
        here.fetch(token)

    assert [each.reason for each in here.refused] == [reason]
    assert code in str(ended.value)
    assert "quoted-token" not in str(ended.value)


def test_scan_file_may_say_what_a_code_means() -> None:
    source = {**ITEMS, "errors": [{"code": "ValidationException", "means": "window"}]}

    with pytest.raises(SourceWindowError):
        asking(source, refused("ValidationException")).fetch(TOKEN)


def test_continuation_that_is_gone_begins_a_generation_from_nothing(tmp_path: Path) -> None:
    answers = in_turn(
        told({"Items": [item("a")], "LastEvaluatedKey": item("a")}),
        refused("ValidationException"),
        told({"Items": [item("b")]}),
    )

    came = walk(ITEMS, answers, tmp_path, environ=ENVIRON)

    assert came.keys == ["b"]
    assert came.receipt.scan_generation.endswith(".2")


# where requests go, and as whom


def test_bucket_in_another_region_is_not_followed_there() -> None:
    """botocore would sign for that region and send the request to its endpoint."""
    moved = xml("<Error><Code>PermanentRedirect</Code></Error>", status=301)
    moved.headers["x-amz-bucket-region"] = "us-west-2"
    here = asking(OBJECTS, moved)

    with pytest.raises(DestinationRefusedError, match="Name the region"):
        here.fetch()

    assert {each.url.host for each in here.requests} == {"bucket.s3.eu-west-1.amazonaws.com"}


def test_endpoint_is_the_scan_files_whatever_the_surroundings_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere.test")
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    answer = objects([], around="<IsTruncated>false</IsTruncated>")
    plain = asking(OBJECTS, answer)
    store = asking({**OBJECTS, "endpoint_url": "http://store.test:9000"}, answer)

    plain.fetch()
    store.fetch()

    assert plain.last.url.host == "bucket.s3.eu-west-1.amazonaws.com"
    assert "/eu-west-1/s3/" in plain.last.headers["authorization"]
    assert store.last.url.host.endswith("store.test")
    assert (store.last.url.scheme, store.last.url.port) == ("http", 9000)


def test_another_status_of_success_is_no_page() -> None:
    with pytest.raises(ProtocolError) as failed:
        asking(ITEMS, told({"Items": []}, status=202)).fetch()

    assert failed.value.code == "request_rejected"


def test_wait_that_outlasts_the_walk_is_not_begun() -> None:
    here = asking(ITEMS, refused("SlowDown", headers={"retry-after": "61"}))
    here.source.allow(60.0, used=0.0)

    with pytest.raises(TimeLimitError):
        here.fetch()

    assert here.slept == []


@pytest.mark.parametrize(
    ("auth", "environ", "same"),
    [
        (KEYS, {**ENVIRON, "SCAN_SECRET": "rotated"}, True),
        (KEYS, {**ENVIRON, "SCAN_KEY_ID": "AKIAOTHER"}, False),
        ({"profile": "other"}, ENVIRON, False),
        ({**KEYS, "role": {"arn": "arn:aws:iam::111122223333:role/R"}}, ENVIRON, False),
    ],
)
def test_one_walk_is_of_one_credential(auth: Any, environ: Any, same: bool) -> None:
    one = asking(ITEMS, told({}))
    other = Asking({**ITEMS, "auth": auth}, in_turn(told({})), environ=environ)

    assert (one.source.principal() == other.source.principal()) == same


def test_keys_of_a_session_may_be_renewed() -> None:
    keys = {"keys": {**KEYS["keys"], "session_token": {"env": "SCAN_TOKEN"}}}
    hours = [{**ENVIRON, "SCAN_TOKEN": f"t{n}", "SCAN_KEY_ID": f"ASIA{n}"} for n in range(2)]

    one, other = (
        Asking({**ITEMS, "auth": keys}, in_turn(told({})), environ=hour) for hour in hours
    )

    assert one.source.principal() == other.source.principal()


def test_missing_secret_is_named_and_never_the_secret_told() -> None:
    here = Asking(ITEMS, in_turn(told({"Items": []})), environ={"SCAN_KEY_ID": "AKIATEST"})

    with pytest.raises(ConfigurationError, match="SCAN_SECRET"):
        here.source.opening()

    assert here.requests == []


def test_no_credentials_at_all_is_a_matter_of_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    here = asking({**ITEMS, "auth": None}, told({"Items": []}))

    with pytest.raises(ConfigurationError, match="finds no credentials"):
        here.fetch()

    assert here.requests == []


def test_anonymous_requests_are_not_signed() -> None:
    answer = objects([], around="<IsTruncated>false</IsTruncated>")
    here = asking({**OBJECTS, "auth": {"anonymous": True}}, answer)

    here.fetch()

    assert "authorization" not in here.last.headers


def test_role_is_assumed_over_the_transport_of_the_walk() -> None:
    """What is offline stays offline, and the keys of the role sign what follows."""
    role = {**KEYS, "role": {"arn": "arn:aws:iam::111122223333:role/R"}}
    given = "<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
    hour = "<SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
    inner = f"<AssumeRoleResult><Credentials>{given}{hour}</Credentials></AssumeRoleResult>"
    assumed = xml(f"<AssumeRoleResponse>{inner}</AssumeRoleResponse>")
    here = asking({**NAMES, "auth": role}, assumed, told({"Parameters": []}))

    here.fetch()

    first, second = here.requests
    assert first.url.host == "sts.eu-west-1.amazonaws.com"
    assert "Credential=AKIATEST/" in first.headers["authorization"]
    assert "Credential=ASIAROLE/" in second.headers["authorization"]


def test_role_that_may_not_be_assumed_is_a_matter_of_access() -> None:
    role = {**KEYS, "role": {"arn": "arn:aws:iam::111122223333:role/R"}}
    error = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"

    with pytest.raises(AccessRefusedError):
        asking({**NAMES, "auth": role}, xml(error, status=403)).fetch()


KNOWN = {**NAMES, "identity": {}}
SESSION = "arn:aws:sts::111122223333:assumed-role/Auditor/i-0{}"


def by_service(*callers: httpx2.Response) -> Any:
    """Answer STS in turn, and SSM with one page."""
    sts = in_turn(*callers)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.host.startswith("sts."):
            return sts(request)
        return told({"Parameters": [{"Name": "p"}]})

    return answer


def test_sts_names_principal_and_account_and_the_session_of_a_role_is_none_of_it(
    tmp_path: Path,
) -> None:
    answer = by_service(caller(SESSION.format(1)), caller(SESSION.format(2)))

    came = walk(
        KNOWN,
        answer,
        tmp_path,
        environ=ENVIRON,
        contract={"key": ["Name"], "consistency": "live"},
    )

    identity = came.receipt.identity
    assert identity.before == identity.after
    assert (identity.before.principal, identity.before.tenant) == (
        "arn:aws:sts::111122223333:assumed-role/Auditor",
        "111122223333",
    )
    assert came.verdict[0] == "finished"


def test_another_principal_at_the_end_fails(tmp_path: Path) -> None:
    answer = by_service(caller("arn:aws:iam::1:user/a"), caller("arn:aws:iam::1:user/b"))

    came = walk(
        KNOWN,
        answer,
        tmp_path,
        environ=ENVIRON,
        contract={"key": ["Name"], "consistency": "live"},
    )

    assert came.verdict[1] == "failed"
    assert "principal_changed" in came.codes


def test_store_without_sts_is_told_what_to_write() -> None:
    refusing = xml("<Error><Code>NotImplemented</Code></Error>", status=501)
    here = Asking(KNOWN, by_service(refusing), environ=ENVIRON)

    with pytest.raises(ProtocolError, match="write identity: null"):
        here.source.opening()


def test_without_sts_nobody_is_named() -> None:
    here = asking(NAMES, told({"Parameters": []}))

    assert here.source.opening() == Opening()
    assert here.requests == []


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        ("arn:aws:iam::1:user/team/a", "arn:aws:iam::1:user/team/a"),
        ("arn:aws:sts::1:assumed-role/R/s", "arn:aws:sts::1:assumed-role/R"),
        ("arn:aws-cn:sts::1:assumed-role/R/s", "arn:aws-cn:sts::1:assumed-role/R"),
        ("arn:aws:sts::1:federated-user/f", "arn:aws:sts::1:federated-user/f"),
    ],
)
def test_session_is_no_part_of_a_principal(arn: str, principal: str) -> None:
    assert without_session(arn) == principal


# the contract and the evidence


def test_scan_reads_back_as_it_was_written() -> None:
    scan = scan_of({**OBJECTS, "auth": KEYS, "errors": [{"code": "X", "means": "retry"}]})

    assert parse_scan(json.loads(json.dumps(scan_json(scan)))) == scan


def test_body_says_what_was_answered_and_by_what_it_was_read() -> None:
    here = asking(ITEMS, told({"Items": [item("a")], "Count": 1, "ScannedCount": 9}))

    around = json.loads(here.fetch().body)

    assert around["answer"] == {"Items": [{"id": "a"}], "Count": 1, "ScannedCount": 9}
    assert around["read_as"]["records_at"] == "Items"
    assert around["read_as"]["paginator"]["outputs"] == ["LastEvaluatedKey"]
    assert around["read_as"]["parser"].startswith("botocore ")


def test_another_filter_is_another_request() -> None:
    other = {**ITEMS, "params": {"TableName": "u"}}
    pages = [asking(each, told({"Items": []})).fetch() for each in (ITEMS, other)]
    sized = asking({**ITEMS, "page_size": 5}, told({"Items": []})).fetch()

    assert pages[0].fingerprint != pages[1].fingerprint
    assert pages[0].fingerprint == sized.fingerprint


# caches and counters


def test_caches_on_the_way_are_asked_not_to_answer_and_told_where_one_did() -> None:
    one = asking(ITEMS, told({"Items": [item("a")]}, headers={"age": "12"}))

    assert one.fetch().reported.from_cache
    assert one.last.headers["cache-control"] == "no-cache"


def test_token_of_digits_may_be_an_offset_and_a_key_is_none() -> None:
    facts = scan_of(ITEMS).source

    told_tokens = ('{"NextToken":"100"}', '{"Marker":"100"}', '{"NextToken":"AAEA"}')
    assert [facts.counter_in(each) for each in told_tokens] == ["NextToken", None, None]
