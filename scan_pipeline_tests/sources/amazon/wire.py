"""Answers as AWS writes them, and scans over them; the way through botocore is the real one."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs
from zlib import crc32

import httpx2

ENVIRON = {"SCAN_KEY_ID": "AKIATEST", "SCAN_SECRET": "a-secret-of-the-test"}
KEYS = {
    "keys": {
        "access_key_id": {"env": "SCAN_KEY_ID"},
        "secret_access_key": {"env": "SCAN_SECRET"},
    }
}
AWS = {"protocol": "aws", "region": "eu-west-1", "auth": KEYS, "identity": None}

ITEMS = {**AWS, "service": "dynamodb", "operation": "scan", "params": {"TableName": "t"}}
USERS = {**AWS, "service": "iam", "operation": "list_users"}
OBJECTS = {
    **AWS,
    "service": "s3",
    "operation": "list_objects_v2",
    "params": {"Bucket": "bucket"},
    "records_at": "Contents",
}
VERSIONS = {**OBJECTS, "operation": "list_object_versions", "records_at": "Versions"}
NAMES = {**AWS, "service": "ssm", "operation": "describe_parameters"}

S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def told(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """Return an answer of a JSON protocol, with the checksum DynamoDB puts beside it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sum_of = {"x-amz-crc32": str(crc32(raw)), "content-type": "application/x-amz-json-1.0"}
    return httpx2.Response(status, content=raw, headers={**sum_of, **(headers or {})})


def refused(code: str, *, status: int = 400, headers: Mapping[str, str] | None = None) -> Any:
    """Return an error of a JSON protocol, with a message that quotes what must not be told."""
    body = {"__type": f"com.amazonaws.x#{code}", "message": "quoted-token is refused"}
    return told(body, status=status, headers=headers)


def item(identity: str, **attributes: Any) -> dict[str, Any]:
    return {"id": {"S": identity}, **attributes}


def users(
    names: Sequence[str], *, truncated: bool | None, marker: str | None = None
) -> httpx2.Response:
    """Return a page of IAM users."""
    members = "".join(f"<member><UserName>{each}</UserName></member>" for each in names)
    flag = "" if truncated is None else f"<IsTruncated>{str(truncated).lower()}</IsTruncated>"
    token = "" if marker is None else f"<Marker>{marker}</Marker>"
    inner = f"<Users>{members}</Users>{flag}{token}"
    return xml(f"<ListUsersResponse><ListUsersResult>{inner}</ListUsersResult></ListUsersResponse>")


def objects(
    keys: Sequence[str], *, root: str = "ListBucketResult", kind: str = "Contents", around: str = ""
) -> httpx2.Response:
    """Return a page of S3 objects or versions."""
    members = "".join(f"<{kind}><Key>{each}</Key><Size>1</Size></{kind}>" for each in keys)
    return xml(f'<{root} xmlns="{S3_NAMESPACE}">{around}{members}</{root}>')


def xml(text: str, *, status: int = 200) -> httpx2.Response:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    return httpx2.Response(status, content=body, headers={"content-type": "application/xml"})


def caller(arn: str, account: str = "111122223333") -> httpx2.Response:
    """Return STS's answer to who we are."""
    inner = f"<Arn>{arn}</Arn><UserId>u</UserId><Account>{account}</Account>"
    result = f"<GetCallerIdentityResult>{inner}</GetCallerIdentityResult>"
    return xml(f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>")


def sent(request: httpx2.Request) -> dict[str, Any]:
    """Return what a request asks for, whatever the protocol carries it in."""
    if "x-amz-target" in request.headers:
        return json.loads(request.content)
    if request.method == "POST":
        return {name: value[0] for name, value in parse_qs(request.content.decode()).items()}
    return dict(request.url.params)


def in_turn(*answers: Any) -> Callable[[httpx2.Request], httpx2.Response]:
    """Answer one after another; an error is raised, and the last answer comes again."""
    left = list(answers)

    def answer(request: httpx2.Request) -> httpx2.Response:
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return given

    return answer
