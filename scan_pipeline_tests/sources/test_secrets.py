"""A secret is named, and never shows."""

import json
import pickle
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.secrets import SecretRef, parse_secret

SECRET = "sk-live-4f9a1c"
ENVIRON = {"REGISTRY_TOKEN": SECRET}


@record
class Auth:
    """A block of a scan file that holds a reference, as adapters have them."""

    bearer: SecretRef


def test_a_variable_is_read_when_asked() -> None:
    assert parse_secret({"env": "REGISTRY_TOKEN"}).resolve(ENVIRON) == SECRET


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_file_is_read_without_its_line_end(tmp_path: Path, end: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(f"{SECRET}{end}".encode())

    assert parse_secret({"file": str(file)}).resolve({}) == SECRET
    assert parse_secret({"file": "token"}).resolve({}, base=tmp_path) == SECRET


@pytest.mark.parametrize(
    "raw",
    [
        SECRET,
        None,
        [],
        {},
        {"env": None},
        {"env": SECRET},
        {"env": "registry_token"},
        {"env": ""},
        {"env": 5},
        {"env": "A", "file": "/b"},
        {"env": "A", "value": SECRET},
        {"value": SECRET},
        {"file": ""},
        {"file": ["/b"]},
        {SECRET: None},
    ],
)
def test_anything_but_one_reference_is_refused_without_showing_it(raw: Any) -> None:
    blocks = (
        lambda: parse_secret(raw),
        lambda: TypeAdapter(Auth).validate_json(json.dumps({"bearer": raw})),
    )
    for block in blocks:
        with pytest.raises(ContractError, match=r"expected \{env: NAME\}") as refused:
            block()
        assert SECRET not in told(refused.value)
        assert refused.value.__context__ is None  # nothing to dig out either


def test_a_reference_made_in_python_names_one_place_too() -> None:
    for arguments in ({}, {"env": "A", "file": "/b"}):
        with pytest.raises(ContractError, match="twice or not at all"):
            SecretRef(**arguments)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "missing"),
        ({"REGISTRY_TOKEN": ""}, "empty"),
        ({"REGISTRY_TOKEN": " \n"}, "empty"),
        ({"REGISTRY_TOKEN": f"{SECRET}\nX-Admin: yes"}, "line break"),
        ({"REGISTRY_TOKEN": f"{SECRET}\0"}, "control character"),
    ],
)
def test_a_variable_that_gives_no_secret_is_named(environ: Mapping[str, str], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as refused:
        SecretRef(env="REGISTRY_TOKEN").resolve(environ)
    assert "the secret {env: REGISTRY_TOKEN} " in str(refused.value)
    assert SECRET not in told(refused.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read"),
        (b"", "empty"),
        (b"\n", "empty"),
        (SECRET.encode() + b"\n\n", "line break"),
        (SECRET.encode() + b"\xff", "no text"),
        (SECRET.encode() * 10_000, "no text of at most 65536 bytes"),
    ],
)
def test_a_file_that_gives_no_secret_is_named(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigurationError, match=why) as refused:
        SecretRef(file=str(file)).resolve({})
    assert str(file) in str(refused.value)
    assert SECRET not in told(refused.value)


def test_a_relative_file_never_means_the_working_folder() -> None:
    with pytest.raises(ConfigurationError, match="expected an absolute one"):
        SecretRef(file="token").resolve({})


def test_a_reference_shows_and_carries_only_the_reference() -> None:
    ref = SecretRef(env="REGISTRY_TOKEN")
    ref.resolve(ENVIRON)

    assert repr(ref) == str(ref) == f"{ref}" == "SecretRef(env='REGISTRY_TOKEN')"
    assert repr(SecretRef(file="/run/token")) == "SecretRef(file='/run/token')"
    assert SECRET.encode() not in pickle.dumps(ref)
    assert pickle.loads(pickle.dumps(ref)) == ref
    assert SECRET not in json.dumps(TypeAdapter(SecretRef).dump_python(ref))
    assert SECRET not in str(vars(ref))


def test_a_failing_send_does_not_tell_the_secret() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        if request.headers["authorization"] != f"Bearer {SECRET}":
            return httpx2.Response(500)
        raise httpx2.ConnectError("connection refused", request=request)

    ref = SecretRef(env="REGISTRY_TOKEN")
    with (
        httpx2.Client(transport=httpx2.MockTransport(refuse)) as client,
        pytest.raises(httpx2.ConnectError) as failed,
    ):
        client.get(
            "https://registry.example/v1/customers",
            headers={"authorization": f"Bearer {ref.resolve(ENVIRON)}"},
        )

    assert SECRET not in told(failed.value)
    assert SECRET not in repr(failed.value.request)


def told(error: BaseException) -> str:
    """Everything that a log would hold of an error, its causes included."""
    return f"{error!s} {error!r} {''.join(traceback.format_exception(error))}"
