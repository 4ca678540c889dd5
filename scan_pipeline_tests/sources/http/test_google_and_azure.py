"""Tokens of Google and Azure, by their own libraries, from endpoints on this machine."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from scan_pipeline.core.errors import AccessRefusedError, ConfigurationError, ContractError
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import Position
from scan_pipeline.sources.auth import Auth, Google
from scan_pipeline.sources.catalogue import open_source
from scan_pipeline.sources.secrets import SecretRef
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline_tests.sources.over_http import answered, scan_of

SCOPE = "https://www.googleapis.com/auth/admin.directory.user.readonly"
EMAIL = "walker@project.iam.gserviceaccount.com"
REFRESH = {"status": 401, "body": {"at": "error", "equals": "expired"}, "means": "refresh"}
SOURCE = {
    "protocol": "page_token",
    "url": "https://source.test/things",
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    "responses": [REFRESH],
}
PAGE = {"items": [{"id": "1"}], "next": None}


@dataclass
class Endpoint:
    """A token endpoint: what it was asked, and what it answers."""

    port: int = 0
    status: int = 200
    asked: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/token"

    def grant(self) -> dict[str, object]:
        number = len(self.asked)
        ends = datetime.now(UTC) + timedelta(hours=1)
        return {
            "access_token": f"token-{number}",
            "token_type": "Bearer",
            "expires_in": 3600,
            "expires_on": int(ends.timestamp()),
            "resource": "r",
        }


@contextmanager
def token_endpoint():
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            size = int(self.headers.get("content-length") or 0)
            parts = urlsplit(self.path)
            form = parse_qs(self.rfile.read(size).decode() or parts.query)
            heads = {name.lower(): value for name, value in self.headers.items()}
            endpoint.asked.append((parts.path, heads, {k: v[0] for k, v in form.items()}))
            told = endpoint.grant() if endpoint.status == 200 else {"error": "invalid_grant"}
            body = json.dumps(told).encode()
            self.send_response(endpoint.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815  # the server's own names

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def endpoint():
    with token_endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def service_account(key, endpoint):
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return json.dumps(
        {
            "type": "service_account",
            "client_email": EMAIL,
            "private_key_id": "k1",
            "private_key": pem.decode(),
            "token_uri": endpoint.url,
        }
    )


def opened(auth, environ, answer):
    return open_source(
        scan_of({**SOURCE, "auth": auth}),
        Surroundings(
            environ=environ,
            inner=httpx2.MockTransport(answer),
            clock=lambda: datetime.now(UTC),
            sleep=lambda _: None,
            retries=Retries(attempts=2),
        ),
    )


def fetch(source):
    return source.fetch(Position(), refused=lambda _: None)


def test_service_account_signs_for_its_scope_and_user_and_the_token_is_sent(key, endpoint):
    sent = []

    def answer(request):
        sent.append(request.headers["authorization"])
        return answered(PAGE)

    google = {"scopes": [SCOPE], "service_account": {"env": "KEY"}, "subject": "admin@example.com"}
    source = opened({"google": google}, {"KEY": service_account(key, endpoint)}, answer)
    fetch(source)
    fetch(source)
    ((_, _, form),) = endpoint.asked
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    claims = jwt.decode(form["assertion"], certs=public, audience=None)

    assert (claims["iss"], claims["scope"], claims["sub"]) == (EMAIL, SCOPE, "admin@example.com")
    assert sent == ["Bearer token-1", "Bearer token-1"]


def test_token_that_wore_out_is_renewed_once(key, endpoint):
    def answer(request):
        worn_out = request.headers["authorization"] == "Bearer token-1"
        return answered({"error": "expired"}, status=401) if worn_out else answered(PAGE)

    google = {"scopes": [SCOPE], "service_account": {"env": "KEY"}}
    fetch(opened({"google": google}, {"KEY": service_account(key, endpoint)}, answer))

    assert len(endpoint.asked) == 2


def test_refused_identity_is_told_without_its_key(key, endpoint):
    endpoint.status = 400
    secret = service_account(key, endpoint)
    source = opened(
        {"google": {"scopes": [SCOPE], "service_account": {"env": "KEY"}}},
        {"KEY": secret},
        lambda _: answered(PAGE),
    )

    with pytest.raises(AccessRefusedError) as refused:
        fetch(source)
    assert "PRIVATE" not in str(refused.value)


@pytest.mark.parametrize("key_text", ["not json", "{}", '{"client_email": "a@b"}'])
def test_key_that_is_none_is_a_configuration_error_and_is_not_shown(key_text):
    source = opened(
        {"google": {"scopes": [SCOPE], "service_account": {"env": "KEY"}}},
        {"KEY": key_text},
        lambda _: answered(PAGE),
    )

    with pytest.raises(ConfigurationError) as refused:
        fetch(source)
    assert key_text not in str(refused.value)


def test_what_the_machine_runs_as_is_used_where_no_key_is_named(
    key, endpoint, tmp_path, monkeypatch
):
    path = tmp_path / "default.json"
    path.write_text(service_account(key, endpoint))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))

    fetch(opened({"google": {"scopes": [SCOPE]}}, {}, lambda _: answered(PAGE)))

    assert len(endpoint.asked) == 1


def test_account_stays_where_its_key_is_changed(key, endpoint):
    auth = Auth(google=Google(scopes=(SCOPE,), service_account=SecretRef(env="KEY")))
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    one, two = (service_account(each, endpoint) for each in (key, other))

    assert auth.principal_bytes({"KEY": one}) == auth.principal_bytes({"KEY": two})


def test_subject_needs_an_account_that_acts_for_it():
    with pytest.raises(ContractError, match="service_account"):
        Google(scopes=(SCOPE,), subject="admin@example.com")


def test_managed_identity_is_asked_for_the_scope_and_its_token_is_sent(endpoint, monkeypatch):
    monkeypatch.setenv("IDENTITY_ENDPOINT", endpoint.url)
    monkeypatch.setenv("IDENTITY_HEADER", "local-secret")
    sent = []

    def answer(request):
        sent.append(request.headers["authorization"])
        return answered(PAGE)

    source = opened({"azure": {"scope": "https://graph.microsoft.com/.default"}}, {}, answer)
    fetch(source)
    fetch(source)
    source.close()
    ((_, heads, form),) = endpoint.asked

    assert form["resource"] == "https://graph.microsoft.com"
    assert heads["x-identity-header"] == "local-secret"
    assert sent == ["Bearer token-1"] * 2


def test_managed_identity_that_wore_out_is_asked_anew(endpoint, monkeypatch):
    monkeypatch.setenv("IDENTITY_ENDPOINT", endpoint.url)
    monkeypatch.setenv("IDENTITY_HEADER", "local-secret")

    def answer(request):
        worn_out = request.headers["authorization"] == "Bearer token-1"
        return answered({"error": "expired"}, status=401) if worn_out else answered(PAGE)

    source = opened({"azure": {"scope": "https://graph.microsoft.com/.default"}}, {}, answer)
    fetch(source)
    source.close()

    assert len(endpoint.asked) == 2
