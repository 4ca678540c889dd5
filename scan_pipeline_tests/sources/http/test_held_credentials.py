"""A secret behind a reference may be changed while a walk lasts; it is read again when needed."""

import pytest

from scan_pipeline.core.errors import AccessRefusedError, ProtocolError
from scan_pipeline_tests.sources.over_http import Asking, answered, walk

SOURCE = {
    "protocol": "page_token",
    "url": "https://source.test/things",
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    "responses": [{"status": 401, "means": "refresh"}],
}
PAGE = {"items": [{"id": "1"}], "next": None}


def rotated(token):
    """Return a source that knows one token alone."""

    def answer(request):
        known = request.headers["authorization"] == f"Bearer {token['known']}"
        return answered(PAGE) if known else answered({}, status=401)

    return answer


@pytest.mark.parametrize("kept", ["file", "env"])
def test_secret_that_was_rotated_is_read_again(tmp_path, kept):
    token, environ, path = {"known": "t1"}, {"TOKEN": "t1"}, tmp_path / "token"
    path.write_text("t1\n")
    reference = {"file": str(path)} if kept == "file" else {"env": "TOKEN"}
    asked = Asking({**SOURCE, "auth": {"bearer": reference}}, rotated(token), environ=environ)
    asked.fetch()

    def rotate(request):
        """A sidecar changes the token while the request with the old one is on its way."""
        if token["known"] == "t1":
            token["known"] = environ["TOKEN"] = "t2"
            path.write_text("t2\n")
        return rotated(token)(request)

    asked._answer = rotate

    assert asked.fetch().attempts == 2
    assert [each.headers["authorization"][-2:] for each in asked.requests] == ["t1", "t1", "t2"]
    assert [each.reason for each in asked.refused] == ["credentials_worn_out"]


def test_secret_that_stayed_the_same_is_not_sent_again():
    asked = Asking(
        {**SOURCE, "auth": {"bearer": {"env": "TOKEN"}}},
        rotated({"known": "another"}),
        environ={"TOKEN": "t1"},
    )

    with pytest.raises(AccessRefusedError, match="worn out"):
        asked.fetch()

    assert len(asked.requests) == 1


def test_rotation_to_another_principal_is_noticed_without_a_refusal():
    environ = {"TOKEN": "ann"}

    def answer(request):
        user = request.headers["authorization"].removeprefix("Bearer ")
        return answered({"user": user} if request.url.path == "/me" else PAGE)

    identity = {"url": "https://source.test/me", "at": "user"}
    source = {**SOURCE, "auth": {"bearer": {"env": "TOKEN"}}, "identity": identity}
    asked = Asking(source, answer, environ=environ)
    asked.source.opening()
    asked.fetch()
    environ["TOKEN"] = "bob"

    with pytest.raises(ProtocolError, match="sees bob; expected ann"):
        asked.fetch()


def test_page_of_another_principal_is_not_admitted(tmp_path):
    environ = {"TOKEN": "ann"}

    def answer(request):
        user = request.headers["authorization"].removeprefix("Bearer ")
        if request.url.path == "/me":
            return answered({"user": user})
        if "cursor" in request.url.params:
            return answered({"items": [{"id": "2"}], "next": None})
        environ["TOKEN"] = "bob"
        return answered({"items": [{"id": "1"}], "next": "k"})

    identity = {"url": "https://source.test/me", "at": "user"}
    source = {**SOURCE, "auth": {"bearer": {"env": "TOKEN"}}, "identity": identity}
    walked = walk(source, answer, tmp_path, environ=environ)

    assert walked.keys == ["1"]
    assert walked.codes >= {"principal_changed"}
    assert walked.receipt.coverage_status == "failed"


@pytest.mark.parametrize(("identity", "status"), [(True, "verified"), (False, "unknown")])
def test_secret_that_changed_and_is_nobodys_by_name_proves_nothing(tmp_path, identity, status):
    environ = {"TOKEN": "t1"}

    def answer(request):
        if request.url.path == "/me":
            return answered({"user": "ann"})
        environ["TOKEN"] = "t2"
        later = "cursor" in request.url.params
        page = {"items": [{"id": "2" if later else "1"}], "next": None if later else "x"}
        return answered({**page, "version": "v1", "total": 2})

    source = {
        **SOURCE,
        "auth": {"bearer": {"env": "TOKEN"}},
        "snapshot": {"at": "version", "send_as": "at"},
        "count": {"at": "total", "means": "total", "exactness": "exact"},
    }
    if identity:
        source["identity"] = {"url": "https://source.test/me", "at": "user"}
    contract = {"key": ["id"], "consistency": "snapshot"}

    receipt = walk(source, answer, tmp_path, environ=environ, contract=contract).receipt

    assert receipt.coverage_status == status
    told = [each.code for each in receipt.findings.first]
    assert told == ([] if identity else ["credential_changed"])
