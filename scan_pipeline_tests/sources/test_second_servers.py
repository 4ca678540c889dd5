"""Next links that weaken a request, against a second server that listens and hears nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline_tests.sources.http.certificates import Authority
from scan_pipeline_tests.sources.http.listeners import Heard, Served, listening, whole
from scan_pipeline_tests.sources.over_http import walk

SECRET = {"TOKEN": "the secret itself"}


def never(_connection: Any, _head: bytes) -> None:
    """Answer nothing: nobody should ask."""


def linking(second: Heard) -> Served:
    """Return a first server's page, whose next one lies at the second server."""
    link = f"http://127.0.0.1:{second.port}/steal"
    page = json.dumps({"items": [{"id": "a"}], "next": link}).encode()
    return lambda connection, _: connection.sendall(whole(page))


def source(url: str, following: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    return {
        "protocol": "next_link",
        "url": url,
        "records_at": "items",
        "auth": {"bearer": {"env": "TOKEN"}},
        "next": {"at": "next", "ends_when": [{"is": "null"}], **following},
        **facts,
    }


def test_link_without_tls_reaches_no_second_server(tmp_path: Path) -> None:
    """The first server speaks TLS; its next link names a plain one on the same host."""
    authority = Authority(tmp_path)
    context = authority.server()

    def wrap(plain: Any) -> Any:
        return context.wrap_socket(plain, server_side=True)

    with listening(never) as second, listening(linking(second), wrap=wrap) as first:
        facts = source(
            f"https://127.0.0.1:{first.port}/things",
            {},
            network={"ca_bundle": str(authority.bundle)},
        )
        came = walk(facts, None, tmp_path, environ=SECRET)

    assert came.verdict == ("failed", "failed", "observed_pages_only")
    assert "destination_refused" in came.codes
    assert came.keys == ["a"]
    assert [b"the secret itself" in head for head in first.requests] == [True]
    assert second.requests == []


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named in origins"])
def test_link_into_our_network_reaches_no_second_server(
    tmp_path: Path, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source lies outside, behind a proxy; its next link names a server of ours."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    with listening(never) as second, listening(linking(second)) as proxy:
        origins = [f"http://127.0.0.1:{second.port}"] if named else []
        facts = source(
            "http://outside.example/things",
            {"origins": origins},
            network={"proxy": {"url": f"http://127.0.0.1:{proxy.port}"}},
        )
        came = walk(facts, None, tmp_path, environ=SECRET)

    assert came.verdict == ("failed", "failed", "observed_pages_only")
    assert "destination_refused" in came.codes
    assert came.keys == ["a"]
    assert [b"the secret itself" in head for head in proxy.requests] == [True]
    assert second.requests == []
