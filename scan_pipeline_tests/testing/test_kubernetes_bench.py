"""The Kubernetes provider under the kit: the simulated cluster as an ASGI application."""

import httpx2
import pytest
import yaml

from scan_pipeline.simulator.kubernetes import TOKEN, KubernetesCluster, create_kubernetes_app
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.testing import BEHAVIOURS, AppBench, AsgiTransport, Conformance
from scan_pipeline_tests.conftest import edited
from scan_pipeline_tests.sources.clusters import DIRECT, FACTS

URL = "http://cluster.test"
LIST = "/apis/registry.example.com/v1/customers"
EDITS = {**DIRECT, "source.url": URL, "source.limit": 4}
NAMED = {str(each): each for each in BEHAVIOURS}


def served() -> AsgiTransport:
    return AsgiTransport(create_kubernetes_app(KubernetesCluster(size=11)))


def keys() -> list[str]:
    """Return the uids of the whole list, in its order."""
    asked = httpx2.Request("GET", URL + LIST, headers={"authorization": f"Bearer {TOKEN}"})
    items = served().handle_request(asked).json()["items"]
    return [each["metadata"]["uid"] for each in items]


@pytest.fixture(scope="module")
def kit() -> Conformance:
    facts = edited(yaml.safe_load(FACTS.read_text(encoding="utf-8")), EDITS)
    bench = AppBench(
        parse_scan(facts),
        served,
        keys=keys(),
        environ={"CLUSTER_TOKEN": TOKEN},
        is_page=lambda request: request.method == "GET" and request.url.path == LIST,
    )
    return Conformance(bench)


@pytest.mark.parametrize(
    "name", ["order-undisturbed", "loop-equal_page", "expiry-expired", "end-body_cut"]
)
def test_kubernetes_behaves(name: str, kit: Conformance) -> None:
    result = kit.run(NAMED[name])

    assert result.verdict == "passed", result


@pytest.mark.long
def test_kubernetes_behaves_in_all(kit: Conformance) -> None:
    report = kit.report()

    report.check()
    assert report.passed
