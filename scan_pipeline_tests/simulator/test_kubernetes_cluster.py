"""The simulated cluster keeps the list contract that kubernetes.io documents, point by point."""

import json

import httpx2
import pytest

from scan_pipeline.simulator import kubernetes_faults as faulty
from scan_pipeline.simulator.kubernetes import (
    READER,
    REVIEW_PATH,
    TOKEN,
    KubernetesCluster,
    create_kubernetes_app,
)
from scan_pipeline.simulator.kubernetes_objects import LIST_PATH
from scan_pipeline.simulator.mutations import Delete, Update
from scan_pipeline.simulator.server import running_app

SIZE = 30


class Asked:
    """One answer, taken apart."""

    def __init__(self, answer):
        self.status, self.headers = answer.status, answer.headers
        self.body = json.loads(answer.body)
        self.metadata = self.body.get("metadata", {})
        self.token = self.metadata.get("continue")

    @property
    def names(self):
        return [each["metadata"]["name"] for each in self.body["items"]]


def ask(cluster, path=LIST_PATH, *, method="GET", token=TOKEN, accept="application/json", **params):
    headers = {"authorization": f"Bearer {token}", "accept": accept}
    return Asked(cluster.answer(method, path, params, headers))


@pytest.fixture
def cluster():
    return KubernetesCluster(size=SIZE)


def test_list_without_a_limit_holds_everything_in_order_of_its_keys(cluster):
    told = ask(cluster)

    keys = [(e["metadata"]["namespace"], e["metadata"]["name"]) for e in told.body["items"]]
    assert (len(keys), keys) == (SIZE, sorted(keys))
    assert (told.body["kind"], told.body["apiVersion"]) == (
        "CustomerList",
        "registry.example.com/v1",
    )
    assert told.metadata == {"resourceVersion": "1000"}


def test_chunks_of_one_list_are_one_version_and_everything_once(cluster):
    seen, token = [], {}
    for left in (20, 10, None):
        told = ask(cluster, limit="10", **token)
        cluster.mutate(Update(first=1, last=SIZE, status="closed"))
        assert told.metadata["resourceVersion"] == "1000"
        assert told.metadata.get("remainingItemCount") == left
        seen += told.names
        token = {"continue": told.token} if told.token else {}

    assert token == {}
    assert seen == ask(KubernetesCluster(size=SIZE)).names


@pytest.mark.parametrize(
    ("params", "status", "reason"),
    [
        ({"continue": "TOKEN", "resourceVersion": "1000"}, 400, "BadRequest"),
        ({"continue": "TOKEN", "resourceVersionMatch": "Exact"}, 422, "Invalid"),
        (
            {"continue": "TOKEN", "resourceVersion": "1000", "resourceVersionMatch": "Exact"},
            422,
            "Invalid",
        ),
        ({"resourceVersionMatch": "Exact"}, 422, "Invalid"),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422, "Invalid"),
        ({"resourceVersion": "1000", "resourceVersionMatch": "Newest"}, 422, "Invalid"),
        ({"continue": "no-token"}, 400, "BadRequest"),
        ({"resourceVersion": "old", "resourceVersionMatch": "Exact"}, 400, "BadRequest"),
        ({"limit": "many"}, 400, "BadRequest"),
        ({"labelSelector": "region in (eu)"}, 400, "BadRequest"),
        ({"fieldSelector": "spec.region=eu"}, 400, "BadRequest"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(cluster, params, status, reason):
    token = ask(cluster, limit="10").token
    sent = {name: token if value == "TOKEN" else value for name, value in params.items()}

    told = ask(cluster, **{"limit": "10", **sent})

    assert (told.status, told.body["reason"]) == (status, reason)
    assert told.body["kind"] == "Status"


def test_version_is_read_again_exactly_with_or_without_saying_so(cluster):
    before = ask(cluster, limit="10")
    cluster.mutate(Delete(first=1, last=20))
    named = {"limit": "10", "resourceVersion": "1000"}

    assert ask(cluster, **named, resourceVersionMatch="Exact").body == before.body
    assert ask(cluster, **named).body == before.body
    assert ask(cluster, **named, resourceVersionMatch="NotOlderThan").body != before.body
    assert ask(cluster, limit="10").metadata["resourceVersion"] == "1001"


def test_compacted_version_is_gone_and_a_token_of_it_offers_a_weaker_one(cluster):
    first = ask(cluster, limit="10")
    cluster.mutate(Delete(first=1, last=20))
    cluster.compact()

    exact = ask(cluster, limit="10", resourceVersion="1000", resourceVersionMatch="Exact")
    gone = ask(cluster, limit="10", **{"continue": first.token})
    weaker = ask(cluster, limit="10", **{"continue": gone.token})

    assert (exact.status, exact.body["reason"], exact.token) == (410, "Expired", None)
    assert (gone.status, gone.body["reason"]) == (410, "Expired")
    assert weaker.status == 200
    assert weaker.metadata["resourceVersion"] == "1001"  # another snapshot than that of page 1


def test_version_of_the_future_asks_to_wait(cluster):
    told = ask(cluster, limit="10", resourceVersion="9999", resourceVersionMatch="Exact")

    assert (told.status, told.headers["retry-after"]) == (504, "1")


def test_what_remains_is_unknown_under_a_selector(cluster):
    told = ask(cluster, limit="2", labelSelector="region=eu")

    assert told.token is not None
    assert "remainingItemCount" not in told.metadata


def test_namespaces_are_lists_of_their_own(cluster):
    path = LIST_PATH.replace("/customers", "/namespaces/{}/customers")

    acme, globex = ask(cluster, path.format("acme")), ask(cluster, path.format("globex"))

    assert sorted(acme.names + globex.names) == sorted(ask(cluster).names)
    assert ask(cluster, path.format("nowhere")).names == []
    assert ask(cluster, LIST_PATH.replace("customers", "orders")).status == 404


def test_one_object_is_chosen_by_its_name(cluster):
    assert ask(cluster, fieldSelector="metadata.name=customer-7").names == ["customer-7"]


def test_metadata_comes_alone_where_it_is_asked_for(cluster):
    told = ask(cluster, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")

    assert told.body["kind"] == "PartialObjectMetadataList"
    assert all(each.keys() == {"apiVersion", "kind", "metadata"} for each in told.body["items"])


def test_review_tells_who_asks(cluster):
    told = ask(cluster, REVIEW_PATH, method="POST")

    assert (told.status, told.body["status"]["userInfo"]["username"]) == (201, READER)
    assert ask(cluster, token="nobody's").status == 401
    silent = KubernetesCluster(size=1, reviews=False)
    assert ask(silent, REVIEW_PATH, method="POST").status == 404


def test_fault_strikes_its_requests_alone():
    cluster = KubernetesCluster(
        size=SIZE, faults=[faulty.StatusSent(request=2, status=429, reason="TooManyRequests")]
    )

    assert [ask(cluster).status for _ in range(3)] == [200, 429, 200]


def test_cluster_answers_the_same_over_a_port(cluster):
    with running_app(create_kubernetes_app(cluster)) as url:
        told = httpx2.get(
            f"{url}{LIST_PATH}",
            params={"limit": "10"},
            headers={"authorization": f"Bearer {TOKEN}"},
        )

    assert told.json() == ask(cluster, limit="10").body
