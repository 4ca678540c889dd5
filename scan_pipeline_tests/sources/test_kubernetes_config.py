"""Clusters as kubeconfigs name them: certificates, tokens, credential plugins, and what is refused.

The loader is the official client's; these tests hold what is made of it.
"""

import importlib
import json
import socket
import ssl
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
import yaml

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.simulator import kubernetes_faults as faulty
from scan_pipeline.simulator.kubernetes import KubernetesCluster, create_kubernetes_app
from scan_pipeline_tests.conftest import SteppingClock
from scan_pipeline_tests.sources.certificates import Authority, Pair, authority
from scan_pipeline_tests.sources.clusters import (
    ClusterBench,
    ClusterWalk,
    after_page,
    cluster_bench,
)

pytest.importorskip("kubernetes")

SOME = 300
CHUNKS = {"source.limit": 100}
ADMIN = "admin@cluster.example"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ClusterBench]:
    with cluster_bench(tmp_path, SteppingClock(datetime(2026, 11, 30, 2, tzinfo=UTC))) as bench:
        yield bench


@pytest.fixture
def walk(bench: ClusterBench, tmp_path: Path) -> Callable[..., ClusterWalk]:
    """Writes a kubeconfig of one context and walks by it."""

    def run(
        server: str, user: Any, *, cluster: Any = None, edits: Any = None, **arguments: Any
    ) -> ClusterWalk:
        path = tmp_path / "config"
        path.write_text(kubeconfig(server, user, cluster or {}), encoding="utf-8")
        named = {"source.kubeconfig": str(path), **CHUNKS, **(edits or {})}
        return bench.run(bench.scan(named), **arguments)

    return run


def kubeconfig(server: str, user: Any, cluster: Any) -> str:
    """Write a kubeconfig; its current context leads nowhere, since it must not be used."""
    context = {"cluster": "prod", "user": "someone"} if user is not None else {"cluster": "prod"}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "elsewhere",
            "clusters": [
                {"name": "prod", "cluster": {"server": server, **cluster}},
                {"name": "elsewhere", "cluster": {"server": "http://127.0.0.1:9"}},
            ],
            "contexts": [
                {"name": "production", "context": context},
                {"name": "elsewhere", "context": {"cluster": "elsewhere"}},
            ],
            "users": [{"name": "someone", "user": user or {}}],
        }
    )


@contextmanager
def serving_tls(cluster: KubernetesCluster, server: Pair, *, clients: Pair) -> Iterator[str]:
    """Serve a cluster over TLS to whoever has a certificate of an authority."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_kubernetes_app(cluster),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=str(server.certificate),
        ssl_keyfile=str(server.key),
        ssl_ca_certs=str(clients.certificate),
        ssl_cert_reqs=ssl.CERT_REQUIRED,
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(5)
        listener.close()


@pytest.fixture
def trusted(tmp_path: Path) -> Authority:
    return authority(tmp_path)


@pytest.fixture
def tls_server(trusted: Authority) -> Iterator[str]:
    cluster = KubernetesCluster(size=SOME, by_certificate=ADMIN)
    server = trusted.issue("api.cluster.test", address="127.0.0.1")
    with serving_tls(cluster, server, clients=trusted.pair) as url:
        yield url


def inlined(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("form", ["files", "inlined"])
def test_cluster_is_walked_over_tls_with_its_authority_and_a_client_certificate(
    walk, trusted, tls_server, form
):
    client = trusted.issue("admin")
    if form == "files":
        cluster = {"certificate-authority": str(trusted.pair.certificate)}
        user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    else:
        cluster = {"certificate-authority-data": inlined(trusted.pair.certificate)}
        user = {
            "client-certificate-data": inlined(client.certificate),
            "client-key-data": inlined(client.key),
        }

    walked = walk(tls_server, user, cluster=cluster)

    assert walked.verdict == ("verified", "finished")
    assert walked.receipt.unique_ids_observed == SOME
    assert walked.receipt.identity.before.principal == ADMIN
    assert walked.audit_agrees


def test_name_of_the_server_may_be_another_than_its_address(walk, trusted, tls_server):
    client = trusted.issue("admin")
    user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    cluster = {"certificate-authority": str(trusted.pair.certificate)}

    right = walk(tls_server, user, cluster={**cluster, "tls-server-name": "api.cluster.test"})
    wrong = walk(
        tls_server,
        user,
        cluster={**cluster, "tls-server-name": "another.test"},
        edits={"operation.retries": {"attempts": 1}},
    )

    assert right.verdict == ("verified", "finished")
    assert (wrong.receipt.stop_reason, wrong.receipt.records_observed) == ("source_unavailable", 0)


def test_server_of_another_authority_is_not_asked(walk, trusted, tls_server, tmp_path):
    other = authority(tmp_path, "other")
    client = trusted.issue("admin")
    user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}

    walked = walk(
        tls_server,
        user,
        cluster={"certificate-authority": str(other.pair.certificate)},
        edits={"operation.retries": {"attempts": 1}},
    )

    assert walked.receipt.stop_reason == "source_unavailable"


def test_server_that_would_not_be_checked_is_refused(walk, bench):
    url = bench.serve(KubernetesCluster(size=SOME))

    with pytest.raises(ConfigurationError, match="unchecked"):
        walk(url, {"token": "t"}, cluster={"insecure-skip-tls-verify": True})


def test_token_is_read_from_its_file(walk, bench, tmp_path):
    cluster = KubernetesCluster(size=SOME, users={"secret-1": ADMIN})
    (tmp_path / "token").write_text("secret-1")

    walked = walk(bench.serve(cluster), {"tokenFile": str(tmp_path / "token")})

    assert walked.verdict == ("verified", "finished")


def test_kubeconfig_must_lead_to_the_server_that_the_scan_names(walk, bench):
    cluster = KubernetesCluster(size=SOME, users={"secret-1": ADMIN})

    with pytest.raises(ConfigurationError, match=r"expected https://api\.cluster\.test:443"):
        walk(
            bench.serve(cluster),
            {"token": "secret-1"},
            edits={"source.url": "https://api.cluster.test"},
        )

    assert cluster.asked == []


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"source.context": "no-such-context"}, "cannot be read"),
        ({"source.kubeconfig": "/nowhere/config"}, "cannot be read"),
        ({"source.access": "in_cluster", "source.context": ..., "source.kubeconfig": ...}, "a pod"),
    ],
)
def test_context_that_cannot_be_read_is_told_before_anything_is_asked(walk, edits, told):
    with pytest.raises(ConfigurationError, match=told):
        walk("http://127.0.0.1:9", {"token": "hidden-secret"}, edits=edits)


# credential plugins


class Plugin:
    """A credential plugin whose next credentials a test lays down."""

    def __init__(self, folder: Path) -> None:
        self._program, self._answers = folder / "plugin.py", folder / "credentials.json"
        self._program.write_text(
            "import json, pathlib, sys\n"
            f"path = pathlib.Path({str(self._answers)!r})\n"
            "left = json.loads(path.read_text())\n"
            "given = left[0]\n"
            "path.write_text(json.dumps(left[1:] or left))\n"
            "if given is None:\n"
            "    sys.exit(3)\n"
            "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',\n"
            "    'kind': 'ExecCredential', 'status': given}))\n"
        )

    @property
    def user(self) -> dict[str, Any]:
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": sys.executable,
                "args": [str(self._program)],
                "interactiveMode": "Never",
            }
        }

    def gives(self, *credentials: dict[str, str] | None) -> None:
        """Lay down what each run gives; the last is given again, None fails."""
        self._answers.write_text(json.dumps(credentials))


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def over() -> str:
    return (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_plugin_renews_a_token_whose_time_is_over_within_one_user(walk, bench, plugin):
    plugin.gives({"token": "one", "expirationTimestamp": over()}, {"token": "two"})
    cluster = KubernetesCluster(size=SOME, users={"one": ADMIN, "two": ADMIN})

    walked = walk(bench.serve(cluster), plugin.user)

    assert walked.verdict == ("verified", "finished")
    assert walked.receipt.identity.after.principal == ADMIN


def test_plugin_is_run_again_when_the_server_no_longer_takes_its_token(walk, bench, plugin):
    plugin.gives({"token": "one"}, {"token": "two"})
    cluster = KubernetesCluster(size=SOME, users={"one": ADMIN, "two": ADMIN})

    def revoked():
        del cluster.users["one"]

    walked = walk(bench.serve(cluster), plugin.user, progress=after_page(1, revoked))

    assert walked.verdict == ("verified", "finished")
    assert walked.receipt.refused_responses == 1


def test_renewed_token_of_another_user_fails_the_walk(walk, bench, plugin):
    """Two users see two populations."""
    plugin.gives({"token": "one"}, {"token": "two"})
    cluster = KubernetesCluster(size=SOME, users={"one": ADMIN, "two": "someone-else"})

    def revoked():
        del cluster.users["one"]

    walked = walk(bench.serve(cluster), plugin.user, progress=after_page(1, revoked))

    assert walked.verdict == ("failed", "failed")
    assert walked.codes == {"principal_changed"}


def test_token_that_is_refused_and_not_renewed_interrupts(walk, bench, plugin):
    plugin.gives({"token": "one"})
    lost = faulty.StatusSent(request=2, through=9, status=401, reason="Unauthorized")
    cluster = KubernetesCluster(size=SOME, users={"one": ADMIN}, faults=[lost])

    walked = walk(bench.serve(cluster), plugin.user)

    assert walked.receipt.stop_reason == "access_refused"
    assert len(cluster.asked) == 2


def test_plugin_that_fails_is_not_passed_over(walk, bench, plugin):
    """The loader logs it and would go on as nobody, who may see another population."""
    plugin.gives(None)
    cluster = KubernetesCluster(size=SOME, by_certificate="system:anonymous")

    with pytest.raises(ConfigurationError, match="gives neither a token nor a certificate"):
        walk(bench.serve(cluster), plugin.user)

    assert cluster.asked == []


def test_context_without_a_user_is_walked_as_nobody(walk, bench):
    cluster = KubernetesCluster(size=SOME, by_certificate="system:anonymous")

    walked = walk(bench.serve(cluster), None)

    assert walked.receipt.identity.before.principal == "system:anonymous"


def test_missing_extra_names_itself(walk, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    monkeypatch.delitem(sys.modules, "scan_pipeline.sources.kubernetes_config", raising=False)

    with pytest.raises(ConfigurationError, match=r"pip install 'scan-pipeline\[kubernetes\]'"):
        walk("http://127.0.0.1:9", {"token": "t"})


def test_proxy_of_the_kubeconfig_is_gone_through_and_no_other(tmp_path):
    path = tmp_path / "config"
    named = {"proxy-url": "http://proxy.test:3128"}
    path.write_text(kubeconfig("http://api.cluster.test", {"token": "t"}, named))
    loaded = importlib.import_module("scan_pipeline.sources.kubernetes_config").LoadedAccess(
        context="production",
        kubeconfig=str(path),
        expected=None,
        environ={"HTTP_PROXY": "http://other.test:1", "NO_PROXY": "*"},
    )

    proxy = loaded.network().proxy(httpx2.URL("http://api.cluster.test/apis"))

    assert str(proxy.url) == "http://proxy.test:3128"
