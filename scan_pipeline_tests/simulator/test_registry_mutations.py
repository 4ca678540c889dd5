import json

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.collection import Collection, Selection
from scan_pipeline.simulator.mutations import Delete, Insert, Move, Update, mutated
from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script

ROWS = population("customers", 20)


def keys(rows):
    return [row.number for row in rows]


def test_insert_adds_rows_of_the_newest_schema_and_moment():
    rows = mutated(ROWS, Insert(first=21, last=23), revision=1)

    assert keys(rows) == list(range(1, 24))
    assert json.loads(rows[-1].raw)["created_at"] == "2026-08-29T09:18:01Z"
    assert rows[-1].traits.schema_version == 3


def test_delete_takes_rows_away():
    assert keys(mutated(ROWS, Delete(first=3, last=18), revision=1)) == [1, 2, 19, 20]


def test_update_changes_traits_bytes_and_moment_of_these_rows_alone():
    rows = mutated(ROWS, Update(first=4, schema_version=2, region="mea"), revision=2)

    record = json.loads(rows[3].raw)
    assert (record["schema_version"], record["region"]) == (2, "mea")
    assert record["updated_at"] == "2026-08-29T09:18:02Z"
    assert record["external_id"] == json.loads(ROWS[3].raw)["external_id"]
    assert rows[:3] + rows[4:] == ROWS[:3] + ROWS[4:]


@pytest.mark.parametrize(("to", "place"), [("oldest", 0), ("newest", -1)])
def test_move_puts_a_row_at_either_end_of_the_order_by_time(to, place):
    rows = mutated(ROWS, Move(first=9, to=to), revision=1)

    assert sorted(rows, key=lambda row: row.traits.updated)[place].number == 9


@pytest.mark.parametrize(
    "mutation",
    [Insert(first=20, last=21), Delete(first=21), Update(first=21), Move(first=21, to="newest")],
)
def test_a_mutation_that_cannot_happen_is_an_error(mutation):
    with pytest.raises(ContractError, match="customer-2"):
        mutated(ROWS, mutation, revision=1)


def test_older_revisions_stay_as_they_were():
    collection = Collection("customers", rows=ROWS, scripted=())
    collection.apply(Delete(first=1, last=10))

    assert keys(collection.revision(0).rows) == list(range(1, 21))
    assert keys(collection.head.rows) == list(range(11, 21))
    assert collection.revision(2) is None


def test_view_sees_one_tenant_up_to_a_bound():
    collection = Collection("customers", rows=ROWS, scripted=())
    view = collection.head.view(Selection(tenant="acme", up_to=10))

    assert keys(view.rows) == [r.number for r in ROWS[:10] if r.traits.tenant == "acme"]


def test_scripted_mutation_happens_right_after_its_page_was_first_served(reading):
    script = Script(mutations=(Delete(after_page=2, first=250),))
    reader = reading(Registry(size=300, script=script))

    counts = [page["collection"]["expected_count"] for page in reader.walk(view="live")]

    assert counts == [300, 300, 299]


def test_a_pinned_walk_sees_nothing_of_a_mutation(reading, numbered):
    script = Script(
        mutations=(Delete(after_page=1, first=250), Insert(after_page=2, first=301, last=303))
    )
    reader = reading(Registry(size=300, script=script))

    assert numbered(*reader.walk()) == list(range(1, 301))
    assert numbered(*reader.walk()) == [n for n in range(1, 304) if n != 250]


def test_mutations_are_those_of_one_collection(reading):
    script = Script(mutations=(Delete(after_page=1, first=1, collection="support_cases"),))
    registry = Registry(script=script)
    reading(registry).walk(limit=3)
    cases = reading(registry, collection="support_cases")

    assert cases.page()["collection"]["expected_count"] == 1_200
    assert cases.page()["collection"]["expected_count"] == 1_199


def test_a_running_registry_can_be_changed_by_hand(reading, numbered):
    registry = Registry(size=300)
    reader = reading(registry)
    first = reader.page(view="live")
    registry.mutate(Delete(first=101, last=110))

    assert numbered(reader.page(**reader.after(first, view="live")))[0] == 111
