"""Bodies that botocore would misread in silence are refused before it parses them."""

import json
from typing import Any

import botocore.session
import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.sources.amazon.wire_checks import check_body


def check(service: str, operation: str, body: bytes) -> None:
    model = botocore.session.Session().get_service_model(service)
    check_body(
        body,
        answer=model.operation_model(operation).output_shape,
        protocol=model.resolved_protocol,
    )


ITEM = {"id": {"S": "a"}, "l": {"L": [{"M": {}}]}, "s": {"SS": ["x"]}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"Items": [ITEM], "Count": 1, "Unknown": 5},
        {"Items": None, "LastEvaluatedKey": None},
    ],
)
def test_answer_of_its_type_passes(body: Any) -> None:
    check("dynamodb", "Scan", json.dumps(body).encode())


@pytest.mark.parametrize(
    "body",
    [
        {"Items": {"0": ITEM}},
        {"Items": "letters"},
        {"Items": [["id", "a"]]},
        {"Items": [{"id": "a"}]},
        {"Items": [{"s": {"SS": "abc"}}]},
        {"Items": [{"l": {"L": {"0": {}}}}]},
        {"LastEvaluatedKey": ["id"]},
    ],
)
def test_something_else_where_a_list_or_object_goes_is_refused(body: Any) -> None:
    with pytest.raises(ProtocolError) as failed:
        check("dynamodb", "Scan", json.dumps(body).encode())

    assert failed.value.code == "body_unparsable"


def test_names_on_the_wire_are_those_of_the_model() -> None:
    """API Gateway writes `item` where its model says items."""
    check("apigateway", "GetRestApis", b'{"item": [{"id": "a"}]}')
    with pytest.raises(ProtocolError):
        check("apigateway", "GetRestApis", b'{"item": "a"}')


def test_element_that_stands_twice_is_refused_and_a_flattened_list_is_not() -> None:
    flag = b"<IsTruncated>true</IsTruncated>"
    key = b"<Contents><Key>a</Key></Contents>"

    check("s3", "ListObjectsV2", b"<R>%b%b</R>" % (flag, key * 2))
    with pytest.raises(ProtocolError) as failed:
        check("s3", "ListObjectsV2", b"<R>%b</R>" % (flag * 2))
    assert failed.value.code == "member_doubled"
    inner = b"<Users/>%b" % (flag * 2)
    wrapped = b"<R><ListUsersResult>%b</ListUsersResult></R>" % inner
    with pytest.raises(ProtocolError):
        check("iam", "ListUsers", wrapped)
