import json
from datetime import UTC, datetime, timedelta

import pytest

from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.principals import ANALYST_TOKEN, AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry


def test_answer_has_exactly_the_documented_shape(reading, clock):
    page = reading(Registry(clock=clock)).page()

    assert list(page) == ["items", "page", "collection"]
    assert list(page["page"]) == ["returned_count", "next_cursor", "is_complete"]
    assert page["page"]["returned_count"] == 100
    assert page["page"]["next_cursor"].startswith("cur_")
    assert page["page"]["is_complete"] is False
    assert page["collection"] == {
        "snapshot_id": "customers:2026-08-29T09:18:00Z@r0",
        "expected_count": 8_742,
        "high_water_mark": 8_742,
    }


def test_records_travel_as_they_are(reading):
    body = reading(Registry()).get(page_size=3).content

    raws = [row.raw for row in population("customers", 3)]
    assert body.startswith(b'{"items":[' + b",".join(raws) + b"]")


@pytest.mark.parametrize(
    ("size", "pages"), [(0, [0]), (1, [1]), (100, [100]), (101, [100, 1]), (200, [100, 100])]
)
def test_walk_ends_where_the_rows_do(reading, size, pages):
    walk = reading(Registry(size=size)).walk()

    assert [len(page["items"]) for page in walk] == pages
    assert [page["page"]["is_complete"] for page in walk] == [False] * (len(pages) - 1) + [True]


def test_whole_walk_delivers_every_customer_once_in_order(reading, numbered):
    walk = reading(Registry()).walk()

    assert len(walk) == 88
    assert numbered(*walk) == list(range(1, 8_743))


@pytest.mark.parametrize("order", ["updated_at", "-updated_at"])
def test_order_by_timestamp_with_tie_breaker_loses_nothing(reading, numbered, order):
    walk = reading(Registry(size=1_000)).walk(order=order)

    moments = [item["updated_at"] for page in walk for item in page["items"]]
    assert moments == sorted(moments, reverse=order.startswith("-"))
    assert sorted(numbered(*walk)) == list(range(1, 1_001))


def test_order_without_tie_breaker_loses_rows_tied_on_a_page_edge(reading, numbered):
    walk = reading(Registry(size=1_000)).walk(order="updated_at", tie_breaker="none")

    delivered = numbered(*walk)
    assert len(delivered) == len(set(delivered)) < 1_000
    assert walk[-1]["collection"]["expected_count"] == 1_000


def test_page_size_is_clipped_without_a_word(reading):
    page = reading(Registry()).page(page_size=5_000)

    assert page["page"]["returned_count"] == len(page["items"]) == 500


def test_filters_hold_together_and_count_exactly(reading):
    walk = reading(Registry()).walk(region="eu", status="active", schema_version="2")

    items = [item for page in walk for item in page["items"]]
    assert {(i["region"], i["status"], i["schema_version"]) for i in items} == {("eu", "active", 2)}
    assert len(items) == walk[0]["collection"]["expected_count"] < 8_742


def test_count_can_be_left_out(reading):
    page = reading(Registry()).page(count="none")

    assert list(page["collection"]) == ["snapshot_id", "high_water_mark"]


def test_bound_hides_what_comes_after_it(reading, numbered):
    walk = reading(Registry()).walk(view="live", up_to=150)

    assert numbered(*walk) == list(range(1, 151))
    assert walk[0]["collection"] == {
        "snapshot_id": None,
        "expected_count": 150,
        "high_water_mark": 150,
    }


def test_high_water_mark_can_be_read_before_a_walk(reading):
    client = reading(Registry()).client

    assert client.get("/v1/customers/high_water_mark").json() == {"high_water_mark": 8_742}


def test_support_cases_are_a_collection_of_their_own(reading, numbered):
    walk = reading(Registry(), collection="support_cases").walk(page_size=500)

    assert numbered(*walk) == list(range(1, 1_201))
    assert walk[0]["collection"]["snapshot_id"].startswith("support_cases:")


@pytest.mark.parametrize("by", ["region", "status", "tenant", "schema_version"])
def test_partition_counts_add_up_to_the_count(reading, by):
    reader = reading(Registry())
    first = reader.page(region="eu")
    counts = reader.client.get(
        "/v1/customers/partition_counts",
        params={
            "by": by,
            "region": "eu",
            "snapshot_id": first["collection"]["snapshot_id"],
        },
    ).json()

    assert counts["by"] == by
    assert counts["collection"]["snapshot_id"] == first["collection"]["snapshot_id"]
    total = sum(partition["count"] for partition in counts["partitions"])
    assert total == first["collection"]["expected_count"] == counts["collection"]["expected_count"]


def test_two_principals_have_different_views(reading):
    registry = Registry()
    auditor, analyst = reading(registry), reading(registry, token=ANALYST_TOKEN)

    assert auditor.client.get("/v1/identity").json() == {
        "principal": "auditor@registry.example",
        "tenant": None,
    }
    assert analyst.client.get("/v1/identity").json() == {
        "principal": "analyst@acme.example",
        "tenant": "acme",
    }
    walk = analyst.walk()
    assert {item["tenant"] for page in walk for item in page["items"]} == {"acme"}
    assert (
        walk[0]["collection"]["expected_count"]
        == auditor.page(tenant="acme")["collection"]["expected_count"]
    )


@pytest.mark.parametrize("token", [None, "", "wrong", AUDITOR_TOKEN + "x"])
@pytest.mark.parametrize(
    "path", ["customers", "customers/partition_counts", "customers/high_water_mark", "identity"]
)
def test_without_a_right_token_nothing_is_answered(reading, token, path):
    response = reading(Registry(), token=token).client.get(f"/v1/{path}")

    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["error"]["code"] == "unauthenticated"


def test_another_tenant_is_forbidden(reading):
    response = reading(Registry(), token=ANALYST_TOKEN).get(tenant="globex")

    assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"page_size": "0"}, "invalid_parameter"),
        ({"page_size": "ten"}, "invalid_parameter"),
        ({"up_to": "-1"}, "invalid_parameter"),
        ({"order": "name"}, "invalid_parameter"),
        ({"view": "live", "snapshot_id": "customers:2026-08-29T09:18:00Z@r0"}, "invalid_parameter"),
        ({"limit": "5"}, "unknown_parameter"),
        ({"snapshot_id": "nonsense"}, "snapshot_unknown"),
        ({"snapshot_id": "customers:2026-13-29T09:18:00Z@r0"}, "snapshot_unknown"),
        ({"snapshot_id": "support_cases:2026-08-29T09:18:00Z@r0"}, "snapshot_unknown"),
        ({"snapshot_id": "customers:2026-08-29T09:18:00Z@r1"}, "snapshot_unknown"),
    ],
)
def test_ill_formed_requests_are_refused_in_the_envelope(reading, clock, params, code):
    response = reading(Registry(clock=clock)).get(**params)

    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert set(response.json()["error"]) == {"code", "message"}


def test_a_parameter_comes_once(reading):
    response = reading(Registry()).client.get("/v1/customers?region=eu&region=us")

    assert response.status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v2/customers", 404), ("POST", "/v1/customers", 405)]
)
def test_what_is_not_served_is_refused_in_the_envelope(reading, method, path, status):
    response = reading(Registry()).client.request(method, path)

    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message"}


def test_a_snapshot_is_gone_after_its_lifetime(reading):
    moment = [datetime(2026, 8, 29, 9, 18, tzinfo=UTC)]
    reader = reading(Registry(clock=lambda: moment[0], snapshot_lifetime_s=60))
    following = reader.after(reader.page())

    moment[0] += timedelta(seconds=60)
    assert reader.get(**following).status_code == 200
    moment[0] += timedelta(seconds=1)
    late = reader.get(**following)
    assert (late.status_code, late.json()["error"]["code"]) == (410, "snapshot_expired")


def test_answers_carry_the_registrys_own_date(reading, clock):
    response = reading(Registry(clock=clock)).get()

    assert response.headers["date"] == "Sat, 29 Aug 2026 09:18:00 GMT"
    assert response.headers["content-type"] == "application/json"
    assert int(response.headers["content-length"]) == len(response.content)


def test_registry_remembers_what_it_served(reading):
    registry = Registry(size=250)
    reader = reading(registry)
    walk = reader.walk()
    reader.page(snapshot_id=walk[0]["collection"]["snapshot_id"])
    reader.get(order="name")

    served = registry.served
    assert (served.walks(), served.requests_of_walk(1)) == (1, 4)
    assert [(page.page, page.attempt, page.rows) for page in served.pages] == [
        (1, 1, 100),
        (2, 1, 100),
        (3, 1, 50),
        (1, 2, 100),
    ]
    assert served.cursors() == {page["page"]["next_cursor"] for page in walk[:-1]}
    assert served.refused == {"invalid_parameter": 1}


def test_bodies_are_json_to_the_letter(reading):
    content = reading(Registry()).get(page_size=500).content

    doubled = []

    def hold(pairs):
        names = [name for name, _ in pairs]
        doubled.extend(name for name in names if names.count(name) > 1)
        return dict(pairs)

    json.loads(content, object_pairs_hook=hold)
    assert doubled == []
