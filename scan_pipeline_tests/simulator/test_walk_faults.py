import json

import pytest

from scan_pipeline.simulator.faults import (
    CompletionMisreported,
    CountChanged,
    CountDropped,
    CursorCorrupted,
    CursorDropped,
    CursorRepeats,
    EmptyPage,
    EndEarly,
    FilterChanged,
    PageReplaced,
    PageSkipped,
    PinNotHonoured,
    PrincipalNarrowed,
    RecordDamaged,
    RowsWithheld,
    ShortPage,
    SnapshotChanged,
    SnapshotExpired,
)
from scan_pipeline.simulator.mutations import Insert, Update
from scan_pipeline.simulator.principals import ANALYST_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script


@pytest.fixture
def broken(reading):
    """A reader on 500 customers with faults."""

    def read(*faults, size=500, mutations=(), **script):
        return reading(
            Registry(size=size, script=Script(faults=faults, mutations=mutations, **script))
        )

    return read


def test_a_repeated_cursor_leads_back_to_the_same_page_for_ever(broken, numbered):
    walk = broken(CursorRepeats(page=3, to=3)).walk(limit=7)

    assert [numbered(page)[0] for page in walk] == [1, 101, 201, 201, 201, 201, 201]
    assert len({page["page"]["next_cursor"] for page in walk[2:]}) == 1
    assert not walk[-1]["page"]["is_complete"]


def test_a_repeated_cursor_can_go_round_a_cycle(broken, numbered):
    walk = broken(CursorRepeats(page=4, to=3)).walk(limit=8)

    assert [numbered(page)[0] for page in walk] == [1, 101, 201, 301, 201, 301, 201, 301]


def test_a_repeated_cursor_can_read_differently_each_time(broken, numbered):
    walk = broken(CursorRepeats(page=2, to=2, fresh_text=True)).walk(limit=5)

    assert [numbered(page)[0] for page in walk] == [1, 101, 101, 101, 101]
    assert len({page["page"]["next_cursor"] for page in walk}) == 5


def test_a_repeated_cursor_can_lead_back_to_the_first_page(broken, numbered):
    walk = broken(CursorRepeats(page=2, to=1)).walk(limit=3)

    assert [numbered(page)[0] for page in walk] == [1, 101, 1]


def test_a_dropped_cursor_is_a_missing_member(broken):
    page = broken(CursorDropped(page=3)).walk()[-1]

    assert page["page"] == {"returned_count": 100, "is_complete": False}


def test_a_corrupted_cursor_is_not_opened(broken):
    reader = broken(CursorCorrupted(page=2))
    response = reader.get(**reader.reach(3))

    assert (response.status_code, response.json()["error"]["code"]) == (400, "cursor_invalid")


def test_an_early_end_is_told_like_a_true_one(broken):
    page = broken(EndEarly(page=3)).walk()[-1]

    assert page["page"] == {"returned_count": 100, "next_cursor": None, "is_complete": True}
    assert page["collection"]["expected_count"] == 500


def test_completion_and_cursor_can_disagree(broken):
    walk = broken(
        CompletionMisreported(page=2), CompletionMisreported(page="last", through="end")
    ).walk()

    told = [(page["page"]["is_complete"], bool(page["page"]["next_cursor"])) for page in walk]
    assert told[1] == (True, True)
    assert told[4] == (False, False)


def test_a_short_page_loses_nothing(broken, numbered):
    walk = broken(ShortPage(page=2, rows=7)).walk()

    assert [page["page"]["returned_count"] for page in walk] == [100, 7, 100, 100, 100, 93]
    assert numbered(*walk) == list(range(1, 501))


def test_an_empty_page_loses_nothing(broken, numbered):
    walk = broken(EmptyPage(page=2)).walk()

    assert [len(page["items"]) for page in walk] == [100, 0, 100, 100, 100, 100]
    assert numbered(*walk) == list(range(1, 501))


def test_empty_pages_can_go_on_for_ever(broken):
    walk = broken(EmptyPage(page=3, through="end")).walk(limit=20)

    assert [len(page["items"]) for page in walk] == [100, 100] + [0] * 18
    assert len({page["page"]["next_cursor"] for page in walk}) == 20


def test_a_page_can_come_twice_in_place_of_another(broken, numbered):
    walk = broken(PageReplaced(page=4, by=2)).walk()

    delivered = numbered(*walk)
    assert len(delivered) == 500
    assert set(range(1, 501)) - set(delivered) == set(range(301, 401))
    assert numbered(walk[3]) == numbered(walk[1])


def test_a_replaced_page_is_the_one_that_was_served_behind_a_short_one(broken, numbered):
    walk = broken(ShortPage(page=1, rows=99), PageReplaced(page=4, by=3)).walk()

    assert numbered(walk[3]) == numbered(walk[2]) == list(range(200, 300))
    assert set(range(1, 501)) - set(numbered(*walk)) == set(range(300, 400))


def test_a_skipped_page_never_comes(broken, numbered):
    walk = broken(PageSkipped(page=2)).walk()

    assert numbered(*walk) == [*range(1, 101), *range(201, 501)]
    assert walk[0]["collection"]["expected_count"] == 500


def test_a_skipped_last_page_is_still_an_end(broken, numbered):
    walk = broken(PageSkipped(page=5)).walk()

    assert numbered(*walk) == list(range(1, 401))
    assert walk[-1]["page"] == {"returned_count": 0, "next_cursor": None, "is_complete": True}


@pytest.mark.parametrize(("told", "count"), [("as_sent", 90), ("as_claimed", 100)])
def test_withheld_rows_never_come(broken, numbered, told, count):
    walk = broken(RowsWithheld(page=2, rows=10, returned_count=told)).walk()

    assert walk[1]["page"]["returned_count"] == count
    assert numbered(*walk) == [*range(1, 191), *range(201, 501)]


@pytest.mark.parametrize(
    ("damage", "status"),
    [("field_missing", "missing"), ("type_changed", 7), ("null_field", None)],
)
def test_a_damaged_record_is_the_only_one(broken, damage, status):
    items = broken(RecordDamaged(page="every", number=3, damage=damage)).page()["items"]

    assert items[2].get("status", "missing") == status
    assert all(isinstance(item["status"], str) for item in items[:2] + items[3:])


def test_a_damaged_record_can_lack_its_key(broken):
    items = broken(RecordDamaged(page=1, number=3, damage="key_missing")).page()["items"]

    assert [i for i, item in enumerate(items) if "customer_id" not in item] == [2]


def test_a_damaged_record_can_say_more_than_it_should(broken):
    items = broken(RecordDamaged(page=1, number=3, damage="field_unknown")).page()["items"]

    assert items[2]["unannounced"] == 1


def test_a_damaged_record_can_say_a_member_twice(broken):
    body = broken(RecordDamaged(page=1, number=3, damage="member_doubled")).get(page_size=5).text

    assert body.count('"status":') == 6


def test_one_key_can_come_with_two_versions(broken):
    walk = broken(
        PageReplaced(page=3, by=2), RecordDamaged(page=3, number=150, damage="value_changed")
    ).walk()

    versions = [item for page in walk for item in page["items"]]
    versions = [item["status"] for item in versions if item["customer_id"] == "customer-150"]
    assert len(versions) == len(set(versions)) == 2


def test_a_pin_can_be_echoed_and_not_honoured(broken):
    reader = broken(
        PinNotHonoured(page="every"),
        mutations=(Update(after_page=2, first=5, status="suspended"),),
    )
    walk = reader.walk()
    again = reader.page(snapshot_id=walk[0]["collection"]["snapshot_id"])

    assert {page["collection"]["snapshot_id"] for page in walk} == {
        again["collection"]["snapshot_id"]
    }
    assert again["items"][4]["status"] == "suspended"
    assert again["items"] != walk[0]["items"]


def test_a_changed_snapshot_reports_the_new_one_and_its_rows(broken, numbered):
    reader = broken(SnapshotChanged(page=3), mutations=(Insert(after_page=2, first=501),))
    walk = reader.walk()

    ids = [page["collection"]["snapshot_id"] for page in walk]
    assert len(set(ids[:2])) == len(set(ids[2:])) == 1
    assert ids[1] != ids[2]
    assert ids[2].endswith("@r1")
    assert numbered(*walk) == list(range(1, 502))


def test_a_cursor_of_a_changed_snapshot_is_not_one_of_the_old(broken):
    reader = broken(SnapshotChanged(page=2))
    walk = reader.walk(limit=2)
    old = walk[0]["collection"]["snapshot_id"]

    response = reader.get(cursor=walk[1]["page"]["next_cursor"], snapshot_id=old)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "cursor_mismatch")


def test_a_snapshot_can_expire_in_mid_walk(broken):
    reader = broken(SnapshotExpired(page=3))
    response = reader.get(**reader.reach(3))

    assert (response.status_code, response.json()["error"]["code"]) == (410, "snapshot_expired")


def test_a_narrowed_principal_sees_one_tenant_for_good(broken):
    reader = broken(PrincipalNarrowed(page=2, tenant="globex"))
    walk = reader.walk()

    tenants = [{item["tenant"] for item in page["items"]} for page in walk]
    assert tenants[0] == {"acme", "globex"}
    assert all(seen == {"globex"} for seen in tenants[1:])
    assert walk[1]["collection"]["expected_count"] < walk[0]["collection"]["expected_count"]
    assert reader.client.get("/v1/identity").json()["tenant"] == "globex"
    again = reader.page(snapshot_id=walk[0]["collection"]["snapshot_id"])
    assert {item["tenant"] for item in again["items"]} == {"globex"}


def test_a_narrowed_principal_can_be_left_in_the_dark(broken):
    reader = broken(PrincipalNarrowed(page=2, identity="silent", count="stays"))
    walk = reader.walk()

    assert {page["collection"]["expected_count"] for page in walk} == {500}
    assert reader.client.get("/v1/identity").json()["tenant"] is None
    assert sum(len(page["items"]) for page in walk) < 500
    counts = reader.client.get("/v1/customers/partition_counts", params={"by": "tenant"}).json()
    assert counts["collection"]["expected_count"] == 500


def test_narrowing_one_principal_leaves_the_other_alone(reading):
    registry = Registry(size=500, script=Script(faults=(PrincipalNarrowed(page=2),)))
    reading(registry).walk()

    analyst = reading(registry, token=ANALYST_TOKEN)
    assert {item["tenant"] for page in analyst.walk() for item in page["items"]} == {"acme"}


def test_a_filter_can_be_ignored_on_a_retry(broken):
    reader = broken(FilterChanged(page=2, first_attempt=2))
    following = reader.reach(2, region="eu")
    first, retried = reader.page(**following), reader.page(**following)

    assert {item["region"] for item in first["items"]} == {"eu"}
    assert len({item["region"] for item in retried["items"]}) > 1
    assert retried["collection"] == first["collection"]
    assert reader.get(**reader.after(retried, region="eu")).status_code == 200


def test_a_filter_can_be_exchanged_and_the_count_with_it(broken):
    reader = broken(FilterChanged(page=1, filters=(("region", "us"),), count="follows"))
    page = reader.page(region="eu")

    assert {item["region"] for item in page["items"]} == {"us"}
    assert (
        page["collection"]["expected_count"]
        == reader.client.get(
            "/v1/customers/partition_counts", params={"by": "region", "region": "us"}
        ).json()["collection"]["expected_count"]
    )


def test_the_count_can_change_and_vanish(broken):
    walk = broken(CountChanged(page=2, by=-3), CountDropped(page=3)).walk()

    assert [page["collection"].get("expected_count") for page in walk] == [500, 497, None, 500, 500]


def test_faults_of_one_collection_leave_the_other_alone(reading):
    registry = Registry(script=Script(faults=(EndEarly(page=1, collection="support_cases"),)))

    assert reading(registry).page()["page"]["is_complete"] is False
    assert reading(registry, collection="support_cases").page()["page"]["is_complete"] is True


def test_page_numbers_outlive_the_process(broken, numbered):
    faults = (CursorRepeats(page=3, to=3),)
    earlier, later = broken(*faults), broken(*faults)

    page = later.page(**earlier.reach(3))

    assert numbered(later.page(**later.after(page))) == numbered(page) == list(range(201, 301))


def test_equal_scripts_give_equal_answers(broken, clock, reading):
    def bodies():
        script = Script(
            faults=(ShortPage(page=2, rows=7), EmptyPage(page=3)),
            mutations=(Insert(after_page=1, first=501),),
        )
        return json.dumps(reading(Registry(size=500, clock=clock, script=script)).walk(view="live"))

    assert bodies() == bodies()
