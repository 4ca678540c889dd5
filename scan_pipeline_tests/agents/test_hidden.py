"""What a view keeps back is told by nothing: no filter, figure, failure, receipt or digest."""

import json
import re

import polars as pl
import pytest

from scan_pipeline.agents.access import Access
from scan_pipeline.stages.readers.conditions import Condition
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.agents.conftest import failure, rows_of

HIDDEN = ("email", "notes")


def telling(readers, **view):
    """Give ana a view of the whole, without its hidden columns, and no tenant."""

    def edit(policy):
        policy["scans"]["customers"] = {"views": {"part": view}}
        policy["principals"] = {"ana": {"local_users": ["ana"], "views": {"customers": ["part"]}}}

    readers.change(edit)


@pytest.mark.parametrize(
    "rows",
    [
        [{"field": "salary", "value": "a"}],
        [{"field": "balance", "op": "contains", "value": "hidden-value"}],
        [{"field": "schema_version", "value": "hidden-value"}],
    ],
)
def test_view_that_does_not_fit_tells_its_reader_no_column_and_no_value(readers, rows):
    telling(readers, hide=["email"], rows=rows)

    async def asking(ask):
        return (
            await ask("open_query", scan="customers"),
            await ask("describe_scan", scan="customers"),
        )

    told = readers.ask(asking)

    assert [failure(each) for each in told] == [("ask_for_access", "policy_misfit")] * 2
    for secret in ("email", "salary", "hidden-value", "balance"):
        assert secret not in json.dumps(told)
    assert readers.log[-1]["detail"].startswith("rows or tenant_field")


@pytest.mark.parametrize(
    "hide",
    [
        ["email", "salary"],
        ["address.contry"],
        ["address.country.code"],
        ["notes.text"],
        ["_raw"],
        ["scan_generation"],
    ],
)
def test_view_that_hides_what_is_not_there_shows_nothing(readers, hide):
    """A slip of the pen does not show what was to be hidden; nor does text that may hold JSON."""
    telling(readers, hide=hide)

    async def asking(ask):
        return await ask("open_query", scan="customers")

    assert failure(readers.ask(asking)) == ("ask_for_access", "policy_misfit")
    assert readers.log[-1]["detail"] == f"neither columns nor members: {hide[-1]}"


def test_tenant_field_that_is_no_column_lets_no_tenant_in(readers):
    readers.change(lambda policy: policy["scans"]["customers"].update(tenant_field="owner"))

    async def asking(ask):
        return await ask("open_query", scan="customers", view="screening")

    assert failure(readers.ask(asking)) == ("ask_for_access", "policy_misfit")


def test_scan_without_a_tenant_field_is_closed_to_tenants(readers):
    readers.change(lambda policy: policy["scans"]["customers"].pop("tenant_field"))

    async def asking(ask):
        return await ask("open_query", scan="customers", view="screening")

    assert failure(readers.ask(asking)) == ("ask_for_access", "tenant_line_missing")
    assert failure(readers.ask(asking, who="bob")) == ("ask_for_access", "tenant_line_missing")


def test_hidden_columns_stand_in_no_answer(readers):
    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        handle = opened["result_handle"]
        return [
            opened,
            await ask("list_scans"),
            await ask("describe_scan", scan="customers", view="screening"),
            await ask("read_receipt", scan="customers"),
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("read_record", handle=handle, row=1),
            await ask("conclude", handle=handle),
        ]

    told = json.dumps(readers.ask(asking))

    assert "example.com" not in told
    assert '"email"' not in told
    assert '"notes"' not in told


def test_record_version_is_not_the_digest_of_the_record(readers):
    """With the other fields known, a digest of the record would confirm a guess of a hidden one."""

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        return await ask("read_record", handle=opened["result_handle"], row=1)

    record = readers.ask(asking)
    frame = readers.walked.collection.latest().frame().select("_leaf_hash", "_key_hash").collect()
    digests = [each.hex() for row in frame.iter_rows() for each in row]

    assert not any(record["record_version"] in each for each in digests)


def test_receipt_counts_nothing_for_a_reader_of_a_part(readers):
    async def asking(ask):
        return (
            await ask("read_receipt", scan="customers"),
            await ask("list_scans"),
            await ask("open_query", scan="customers", view="screening"),
        )

    part = readers.ask(asking)
    whole = readers.ask(lambda ask: ask("read_receipt", scan="customers"), who="eve")

    assert not re.search(r"\b1,?000\b", json.dumps(part))
    assert re.search(r"\b1,?000\b", json.dumps(whole))
    assert part[0]["receipt"]["coverage_status"] == "verified"
    assert whole["receipt"]["records_observed"] == 1_000


def test_why_a_newer_night_failed_is_for_who_sees_everything(things, laid_down):
    rows = [[b'{"id":"a","n":1}', b'{"id":"b","n":2}']]
    part = {"rows": [{"field": "n", "value": 1}]}
    policy = {
        "scans": {"things": {"views": {"whole": {}, "part": part}}},
        "principals": {
            "eve": {"local_users": ["eve"], "views": {"things": ["whole"]}},
            "ana": {"local_users": ["ana"], "views": {"things": ["part"]}},
        },
    }
    readers = things(rows, **policy)
    project, walked = readers.walked.workspace.project, readers.walked
    short = Workspace(
        project, environ={}, inner=laid_down(rows, total=987), clock=walked.workspace.clock
    )
    assert not run_scan(walked.scan, workspace=short).stored.receipt.accepted

    async def asking(ask):
        opened = await ask("open_query", scan="things")
        return (
            opened,
            await ask("list_scans"),
            await ask("conclude", handle=opened["result_handle"]),
        )

    everything, some = readers.ask(asking, who="eve"), readers.ask(asking)

    assert all(
        re.search("was not accepted|failed:", json.dumps(each)) for each in (*everything, *some)
    )
    assert all("failed" not in json.dumps(each) for each in some)
    assert "987" in json.dumps(everything)
    assert "987" not in json.dumps(some)


def test_conditions_on_a_column_whose_name_is_of_a_policy_keep_rows_apart(readers):
    """A caller's own condition narrows the tenant's line and never lifts it."""

    async def asking(ask):
        other = [{"field": "tenant", "op": "ne", "value": "acme"}]
        opened = await ask("open_query", scan="customers", view="screening", where=other)
        groups = await ask("aggregate", scan="customers", view="screening", by=["tenant"])
        return opened["summary"], groups["groups"]

    summary, groups = readers.ask(asking)

    assert summary["matching_count"] == 0
    assert [each["by"] for each in groups] == [{"tenant": "acme"}]


def test_view_of_columns_shows_those_alone(readers):
    telling(readers, columns=["customer_id", "region"])

    async def asking(ask):
        opened = await ask("open_query", scan="customers", order=[{"field": "region"}])
        return (await rows_of(ask, opened))[0]["values"], await ask(
            "aggregate", scan="customers", measures=[{"measure": "max", "field": "balance"}]
        )

    shown, refused = readers.ask(asking)

    assert sorted(shown) == ["customer_id", "region"]
    assert failure(refused) == ("narrow", "field_unknown")


def test_hidden_member_is_reached_by_nothing(readers):
    """Neither shown, asked about, ordered by nor counted by, nor told of by a failure."""
    telling(readers, hide=["address.street", "address.postcode"])

    async def asking(ask):
        opened = await ask("open_query", scan="customers", order=[{"field": "customer_id"}])
        handle = opened["result_handle"]
        told = [
            opened,
            await ask("describe_scan", scan="customers"),
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("read_record", handle=handle, row=1),
            await ask("conclude", handle=handle),
        ]
        refused = []
        for path in ("address.street", "address", "address.street.x", "address.postcode"):
            where = [{"field": path, "op": "contains", "value": "1"}]
            measures = [{"measure": "max", "field": path}]
            refused += [
                await ask("open_query", scan="customers", where=where),
                await ask("open_query", scan="customers", order=[{"field": path}]),
                await ask("open_query", scan="customers", columns=[f"{path}.x"]),
                await ask("aggregate", scan="customers", by=[path]),
                await ask("aggregate", scan="customers", measures=measures),
            ]
        city = [{"field": "address.city", "value": told[3]["values"]["address"]["city"]}]
        asked = await ask("open_query", scan="customers", where=city)
        telling(readers, hide=["address.street"])
        return told, refused, asked, await ask("read_record", handle=handle, row=1)

    told, refused, asked, replayed = readers.ask(asking)
    frame = readers.walked.collection.latest().frame().sort("customer_id").collect()
    whole = frame["address"][0]

    assert told[3]["values"]["address"] == {
        name: value for name, value in whole.items() if name not in ("street", "postcode")
    }
    assert told[3]["values"] == told[2]["page"]["items"][0]["values"]
    assert not any(street in json.dumps(told) for street in frame["address"].struct["street"])
    assert "street" not in json.dumps(told)
    assert {failure(each)[0] for each in refused} == {"narrow"}
    for each in refused:  # a path is told back to who wrote it, and the members that are seen
        assert "street" not in each["failure"]["message"].replace("address.street", "")
    assert asked["summary"]["matching_count"] >= 1
    assert failure(replayed) == ("restart", "access_changed")


def test_path_hides_its_member_however_it_is_read_and_null_stays_null():
    """In each element of a list; names may hold dots; an object of which nothing is left goes."""
    rows = [
        {"a.b": 1, "a": {"b": 2, "c.d": 3, "c": {"d": 4, "e": 5}}, "l": [{"x": 1, "y": {"z": 2}}]},
        {"a.b": 1, "a": None, "l": None},
        {"a.b": 1, "a": {"b": None, "c.d": None, "c": None}, "l": [None, {"x": 3, "y": None}]},
    ]
    rows = [{**each, "only": {"x": 1}, "_page": 1} for each in rows]
    frame = pl.DataFrame(rows).lazy()
    schema = frame.collect_schema()
    access = Access(
        principal="ana",
        tenant=None,
        scan="things",
        view="part",
        noun="things",
        rows=(Condition(field="only.x", value=1),),
        columns=None,
        hide=("a.b", "a.c.d", "l.y.z", "l.x", "only.x"),
        needs_one_of=(),
    )

    seen = access.seen(frame, schema).collect()

    assert seen.drop("_page").to_dicts() == [
        {"a": {"c": {"e": 5}}},
        {"a": None},
        {"a": {"c": None}},
    ]
    kept = access.__class__(**{**access.__dict__, "hide": ("l.y",)}).seen(frame, schema).collect()
    assert kept["l"].to_list() == [[{"x": 1}], None, [None, {"x": 3}]]
