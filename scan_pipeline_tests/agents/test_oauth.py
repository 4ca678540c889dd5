"""Access tokens of a real issuer, over real HTTP: whose they are, and those that are nobody's."""

import asyncio
import base64
import json
import socket
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt import PyJWKClient
from jwt.algorithms import HMACAlgorithm
from jwt.exceptions import PyJWKClientConnectionError
from mcp.client import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from scan_pipeline.agents.failures import PolicyError
from scan_pipeline.agents.oauth import OAuth
from scan_pipeline.agents.oauth_keys import IssuerError, IssuerKeys, metadata_addresses
from scan_pipeline.agents.policy import load_policy
from scan_pipeline.agents.serving import http_server
from scan_pipeline.simulator.server import running_app
from scan_pipeline_tests.agents.conftest import TOKENS, Asked, Readers, client_at, failure, rows_of
from scan_pipeline_tests.agents.issuer_app import SECRET, SHARED, Issuer

UNCHECKED: Any = {"verify_signature": False}
KNOCK = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    },
}


@dataclass
class Served:
    """Readers behind an issuer."""

    readers: Readers
    issuer: Issuer
    url: str

    def knock(self, token: str | None) -> httpx2.Response:
        headers = {"accept": "application/json, text/event-stream"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return httpx2.post(self.url, json=KNOCK, headers=headers)

    def ask(self, asking: Any, *, token: str) -> Any:
        async def session() -> Any:
            async with client_at(self.url, token=token) as client:
                return await asking(Asked(client))

        return asyncio.run(session())


def with_subjects(policy: dict[str, Any], oauth: dict[str, Any]) -> None:
    for name, one in policy["principals"].items():
        del one["token_sha256"]
        one["subject"] = f"{name}@corp"
    policy["oauth"] = oauth


@contextmanager
def served_by(readers: Readers, **oauth: Any) -> Iterator[Served]:
    issuer = Issuer()
    with running_app(issuer.app()) as issuer.url:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        issuer.audience = url = f"http://127.0.0.1:{port}/mcp"
        facts = {"issuer": issuer.url, "scopes": ["scan:read"], **oauth}
        readers.change(lambda policy: with_subjects(policy, facts))
        app = http_server(readers.desk, url=url).streamable_http_app()
        with running_app(app, port=port, lifespan="on"):
            yield Served(readers=readers, issuer=issuer, url=url)


@pytest.fixture
def served(readers: Readers) -> Iterator[Served]:
    with served_by(readers) as opened:
        yield opened


def forged(token: str, **header: Any) -> str:
    """Return a token with another header and no signature."""
    _, payload, _ = token.split(".")
    told = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    return f"{told}.{payload}."


def test_token_that_is_not_the_issuers_for_this_server_now_is_nobodys(served):
    issuer, stranger = served.issuer, rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = issuer.rsa_key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    good = issuer.token()
    header, _, signature = good.split(".")
    hmac_key = HMACAlgorithm(HMACAlgorithm.SHA256)
    confused = forged(good, alg="HS256", kid="rsa-1", typ="at+jwt").rstrip(".")
    mac = base64.urlsafe_b64encode(hmac_key.sign(confused.encode(), public)).rstrip(b"=").decode()
    bad = {
        "wrong audience": issuer.token(aud="https://other.example/mcp"),
        "no audience": issuer.token(aud=None),
        "wrong issuer": issuer.token(iss="https://other.example"),
        "no issuer": issuer.token(iss=None),
        "expired": issuer.token(exp=int(jwt.decode(good, options=UNCHECKED)["iat"]) - 5),
        "no expiry": issuer.token(exp=None),
        "not yet": issuer.token(nbf=int(jwt.decode(good, options=UNCHECKED)["iat"]) + 600),
        "no subject": issuer.token(sub=None),
        "empty subject": issuer.token(""),
        "alg none": forged(good, alg="none", kid="rsa-1", typ="at+jwt"),
        "alg none, signed": f"{forged(good, alg='none', kid='rsa-1', typ='at+jwt')}{signature}",
        "public key as a secret": f"{confused}.{mac}",
        "shared secret of the key set": issuer.token(
            key=SHARED, algorithm="HS256", headers={"kid": "oct-1"}
        ),
        "algorithm not named": issuer.token(algorithm="RS512"),
        "algorithm not the key's": issuer.token(algorithm="PS256"),
        "another key": issuer.token(key=stranger),
        "unknown key": issuer.token(headers={"kid": "made-up"}),
        "no key named": issuer.token(headers={"kid": None}),
        "key for something else": issuer.token(headers={"kid": "enc-1"}),
        "an ID token": issuer.token(headers={"typ": "JWT"}),
        "cut": good[:-20],
        "another's payload": f"{header}.{issuer.token('eve@corp').split('.')[1]}.{signature}",
        "no token": "not-a-token",
        "too large": issuer.token(note="x" * 20_000),
        "the policy's own": TOKENS["ana"],
    }

    told = {name: served.knock(token).status_code for name, token in bad.items()}
    for n in range(20):
        told[f"made up {n}"] = served.knock(issuer.token(headers={"kid": f"key-{n}"})).status_code

    assert set(told.values()) == {401}, told
    assert served.knock(good).status_code == 200
    by_curve = issuer.token(key=issuer.ec_key, algorithm="ES256", headers={"kid": "ec-1"})
    assert served.knock(by_curve).status_code == 200
    assert served.knock(issuer.token(scope="openid")).status_code == 403
    assert served.knock(issuer.token(scope=None, scp=["scan:read"])).status_code == 200
    assert issuer.asked.count("/jwks") == 1  # made-up keys have it asked for no more often


def test_subject_is_the_principal_that_the_policy_says_and_no_name(served):
    """Two tenants, each its own rows; revocation acts between two pages, with a good token."""

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        return opened, await ask("read_page", cursor=opened["first_cursor"])

    (acme, page), (globex, _) = (
        served.ask(asking, token=served.issuer.token(f"{name}@corp")) for name in ("ana", "bob")
    )
    told = [
        served.ask(lambda ask: ask("list_scans"), token=served.issuer.token(subject))
        for subject in ("mallory@corp", "ana", "ANA@corp")
    ]

    async def replaying(ask):
        return await ask("read_page", cursor=page["page"]["next_cursor"])

    stolen = served.ask(replaying, token=served.issuer.token("bob@corp"))

    async def revoking(ask):
        second = await ask("read_page", cursor=page["page"]["next_cursor"])
        served.readers.change(lambda policy: policy["principals"]["ana"].update(revoked=True))
        return second, await ask("read_page", cursor=second["page"]["next_cursor"])

    second, revoked = served.ask(revoking, token=served.issuer.token("ana@corp"))

    assert acme["summary"]["population"] + globex["summary"]["population"] == 1_000
    assert [failure(each) for each in told] == [("ask_for_access", "not_authenticated")] * 3
    assert failure(stolen) == ("restart", "handle_unknown")
    assert second["page"]["number"] == 2
    assert failure(revoked) == ("ask_for_access", "not_authenticated")
    assert {each["principal"] for each in served.readers.log} == {"ana", "bob", ""}
    assert "eyJ" not in json.dumps(served.readers.log)


class Kept:
    """Where the client keeps its token."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def test_official_client_finds_the_issuer_by_itself_and_reads_to_the_end(served):
    """401, the resource's metadata, the issuer's metadata, a token, pages: all of it the SDK's."""

    @asynccontextmanager
    async def connected():
        provider = ClientCredentialsOAuthProvider(
            server_url=served.url,
            storage=Kept(),
            client_id="bob@corp",
            client_secret=SECRET,
            scope="scan:read",
            issuer=served.issuer.url,
        )
        async with (
            httpx2.AsyncClient(auth=provider) as http,
            Client(streamable_http_client(served.url, http_client=http)) as client,
        ):
            yield Asked(client)

    async def asking():
        async with connected() as ask:
            opened = await ask("open_query", scan="customers", view="screening")
            return opened, await rows_of(ask, opened)

    opened, items = asyncio.run(asking())
    refused = served.knock(None)
    metadata = httpx2.get(
        served.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    ).json()

    assert len(items) == opened["summary"]["matching_count"] > 300
    assert "/token" in served.issuer.asked
    assert refused.status_code == 401
    assert "oauth-protected-resource/mcp" in refused.headers["www-authenticate"]
    assert metadata["resource"] == served.url
    assert metadata["authorization_servers"] == [served.issuer.url]


@pytest.mark.parametrize("how", ["down", "another", "insecure"])
def test_issuer_that_cannot_be_asked_is_a_failure_to_retry(readers, how):
    """It is told apart from a bad token, which would send the client for another one."""
    with served_by(readers, scopes=[]) as served:
        served.issuer.down = how == "down"
        served.issuer.said = {
            "another": {"issuer": "https://other.example"},
            "insecure": {"jwks_uri": "http://other.example/jwks"},
        }.get(how, {})
        token = served.issuer.token()

        told = served.ask(lambda ask: ask("list_scans"), token=token)
        served.issuer.down, served.issuer.said = False, {}
        mended = served.ask(lambda ask: ask("list_scans"), token=token)

    assert failure(told) == ("retry", "issuer_unreachable")
    assert mended["represents"] == "list"


@pytest.mark.parametrize(
    ("oauth", "told"),
    [
        ({"issuer": "http://other.example"}, "https://"),
        ({"issuer": "https://user@other.example"}, "a user"),
        ({"issuer": "https://other.example/?tenant=1"}, "a query"),
        ({"issuer": "https://other.example", "algorithms": ["HS256"]}, "input should be"),
        ({"issuer": "https://other.example", "algorithms": ["none"]}, "input should be"),
        ({"issuer": "https://other.example", "jwks_uri": "file:///etc/keys"}, "address"),
    ],
)
def test_issuer_that_no_token_could_be_trusted_by_is_no_policy(readers, oauth, told):
    readers.change(lambda policy: with_subjects(policy, oauth))
    with pytest.raises(PolicyError, match=told):
        load_policy(readers.path)


def test_policy_takes_an_issuers_tokens_or_its_own(readers):
    readers.change(lambda policy: policy.update(oauth={"issuer": "https://other.example"}))

    with pytest.raises(PolicyError, match="oauth beside token_sha256"):
        load_policy(readers.path)


def test_metadata_lies_where_the_protocols_say():
    assert metadata_addresses("https://login.example/t1") == (
        "https://login.example/.well-known/oauth-authorization-server/t1",
        "https://login.example/.well-known/openid-configuration/t1",
        "https://login.example/t1/.well-known/openid-configuration",
    )
    assert len(metadata_addresses("https://login.example/")) == 2


def test_issuer_that_does_not_answer_is_not_waited_for_by_every_made_up_key(monkeypatch):
    """Five seconds were waited for in vain: for five it is let alone, and known keys are taken."""
    issuer, now = Issuer(), [0.0]
    with running_app(issuer.app()) as issuer.url:
        facts = OAuth(issuer=issuer.url)
        keys = IssuerKeys(clock=lambda: now[0])
        assert keys.find(facts, kid="rsa-1").key_id == "rsa-1"

        def waiting(*_: Any) -> Any:
            now[0] += 5
            raise PyJWKClientConnectionError("no answer")

        with monkeypatch.context() as patched:
            patched.setattr(PyJWKClient, "get_signing_key", waiting)
            for n in range(4):
                with pytest.raises(IssuerError):
                    keys.find(facts, kid=f"made-up-{n}")
                assert now[0] == 5
            assert keys.find(facts, kid="rsa-1").key_id == "rsa-1"
            now[0] = 11
            with pytest.raises(IssuerError):
                keys.find(facts, kid="made-up")
            assert now[0] == 16
