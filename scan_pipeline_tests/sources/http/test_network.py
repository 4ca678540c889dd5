"""The ways out of here, against listeners: a CA of one's own, mutual TLS, proxies."""

import socket
import threading
from base64 import b64encode

import httpx2
import pytest

from scan_pipeline.core.errors import AccessRefusedError, ConfigurationError, SourceUnavailableError
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import Position
from scan_pipeline.sources.catalogue import ScanFileError, open_source
from scan_pipeline.sources.http.network import reached_directly
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.workspace import utc_now
from scan_pipeline_tests.sources.http.certificates import Authority
from scan_pipeline_tests.sources.http.listeners import listening, whole
from scan_pipeline_tests.sources.over_http import scan_of

PAGE = b'{"items":[{"id":"1"}],"next":null}'
ENVIRON = {"USER_NAME": "us", "PASSWORD": "pr0xy", "KEY_PASSWORD": "l0ck", "TOKEN": "t0k3n"}
USER = {"user": {"env": "USER_NAME"}, "password": {"env": "PASSWORD"}}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def fetch(url, *, environ=None, **network):
    source = open_source(
        scan_of(
            {
                "protocol": "page_token",
                "url": url,
                "auth": {"bearer": {"env": "TOKEN"}},
                "network": network or None,
                "records_at": "items",
                "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
            }
        ),
        Surroundings(
            environ={**ENVIRON, **(environ or {})},
            inner=None,
            clock=utc_now,
            sleep=lambda _: None,
            retries=Retries(attempts=2, timeout=10.0),
        ),
    )
    try:
        return source.fetch(Position(), refused=lambda _: None).records
    finally:
        source.close()


def page(connection, head):
    connection.sendall(whole(PAGE))


def over_tls(context):
    return lambda plain: context.wrap_socket(plain, server_side=True)


def test_certificate_of_a_ca_of_ones_own_is_trusted_where_it_is_named(authority):
    with listening(page, wrap=over_tls(authority.server())) as server:
        url = f"https://127.0.0.1:{server.port}/things"

        with pytest.raises(SourceUnavailableError, match=r"not trusted.*network\.ca_bundle"):
            fetch(url)
        assert server.requests == []
        assert fetch(url, ca_bundle=str(authority.bundle)) == 1


def test_client_proves_itself_with_a_certificate_whose_key_is_locked(authority):
    certificate, key = authority.issue("us", password=ENVIRON["KEY_PASSWORD"])
    ours = {
        "certificate": str(certificate),
        "key": str(key),
        "password": {"env": "KEY_PASSWORD"},
    }
    trusted = str(authority.bundle)
    with listening(page, wrap=over_tls(authority.server(asks_client=True))) as server:
        url = f"https://127.0.0.1:{server.port}/things"

        assert fetch(url, ca_bundle=trusted, client_certificate=ours) == 1
        with pytest.raises(SourceUnavailableError):
            fetch(url, ca_bundle=trusted)
    with pytest.raises(ConfigurationError, match="client_certificate") as locked:
        fetch(url, client_certificate={**ours, "password": {"env": "PASSWORD"}})
    assert ENVIRON["PASSWORD"] not in str(locked.value)
    assert len(server.requests) == 1


def test_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"ca_bundle.*nowhere\.pem"):
        fetch("https://127.0.0.1:1/", ca_bundle=str(tmp_path / "nowhere.pem"))


def forwarding(connection, head):
    """A proxy: answers plain requests itself, and opens tunnels where it is told to."""
    method, target, _ = head.split(b" ", 2)
    known = b64encode(b"us:pr0xy") in head
    if not known:
        connection.sendall(whole(b"", status="407 Who"))
    elif method == b"CONNECT":
        host, _, port = target.decode().partition(":")
        with socket.create_connection((host, int(port))) as there:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(there, connection), daemon=True)
            back.start()
            _copy(connection, there)
            back.join(5)
    else:
        page(connection, head)


def _copy(one, other):
    try:
        while piece := one.recv(65536):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def test_plain_request_goes_through_the_proxy_that_knows_us():
    with listening(forwarding) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"

        assert fetch("http://source.test/things", proxy={"url": address, **USER}) == 1

    assert proxy.requests[0].startswith(b"GET http://source.test/things HTTP/1.1")


def test_tls_goes_through_a_tunnel_and_the_proxy_sees_no_credential(authority):
    with (
        listening(page, wrap=over_tls(authority.server())) as server,
        listening(forwarding) as proxy,
    ):
        records = fetch(
            f"https://127.0.0.1:{server.port}/things",
            proxy={"url": f"http://127.0.0.1:{proxy.port}", **USER},
            ca_bundle=str(authority.bundle),
        )

    assert records == 1
    assert proxy.requests[0].startswith(f"CONNECT 127.0.0.1:{server.port} ".encode())
    assert b"t0k3n" not in b"".join(proxy.requests)
    assert b"pr0xy" not in server.requests[0]
    assert b"proxy-authorization" not in server.requests[0].lower()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_that_does_not_know_us_ends_it_at_once(scheme):
    with listening(forwarding) as proxy, pytest.raises(AccessRefusedError):
        fetch(f"{scheme}://source.test/", proxy={"url": f"http://127.0.0.1:{proxy.port}"})

    assert len(proxy.requests) == 1


def test_variables_name_a_proxy_unless_the_scan_file_says_otherwise():
    with listening(page) as server, listening(forwarding) as proxy:
        url = f"http://127.0.0.1:{server.port}/things"
        environ = {"HTTP_PROXY": f"http://us:pr0xy@127.0.0.1:{proxy.port}"}

        assert fetch(url, environ=environ) == 1
        assert (len(proxy.requests), len(server.requests)) == (1, 0)
        assert fetch(url, environ={**environ, "no_proxy": "127.0.0.0/8"}) == 1
        assert fetch(url, environ=environ, proxy="none") == 1

    assert (len(proxy.requests), len(server.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("no_proxy", "directly"),
    [
        ("", False),
        ("*", True),
        ("source.test", True),
        (".source.test", True),
        ("other.test, SOURCE.test", True),
        ("test", True),
        ("source.test:443", True),
        ("source.test:8443", False),
        ("rce.test", False),
        ("10.0.0.0/8", False),
    ],
)
def test_no_proxy_is_read_as_curl_does(no_proxy, directly):
    assert reached_directly(httpx2.URL("https://api.source.test/"), no_proxy) == directly


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ({"proxy": {"url": "http://us:pw-secret@proxy.test"}}, "proxy.user"),
        ({"proxy": {"url": "socks5://proxy.test"}}, "http:// or https://"),
        ({"proxy": {"url": "http://p.test", "password": {"env": "P"}}}, "needs proxy.user"),
        ({"ca_bundle": "ca.pem"}, "absolute"),
    ],
)
def test_network_that_cannot_be_meant_is_refused(network, told):
    with pytest.raises(ScanFileError, match=told) as refused:
        fetch("https://source.test/", **network)

    assert "pw-secret" not in str(refused.value)
