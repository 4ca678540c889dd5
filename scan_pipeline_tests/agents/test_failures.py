"""Whatever goes wrong comes out as a typed failure without values, and nothing is answered."""

import json

import pytest

from scan_pipeline.stages.restage import restage
from scan_pipeline_tests.agents.conftest import failure, rows_of


@pytest.mark.parametrize(
    "arguments",
    [
        {"scan": "customers", "filter": [{"field": "region", "value": "moon"}]},
        {"scan": "customers", "tenant": "globex"},
        {"scan": "customers", "where": [{"field": "region", "is": "moon"}]},
        {"scan": "customers", "where": [{"field": "schema_version", "value": 3.0}]},
        {"scan": "customers", "where": [{"field": "schema_version", "op": "like", "value": 3}]},
        {"scan": "customers", "stopping": {"policy": "find_up_to", "n": 0}},
        {"scan": ["customers"]},
        {},
    ],
)
def test_argument_that_a_tool_does_not_know_is_refused(readers, arguments):
    """Passed over, a misspelt filter would give an exact count of everything."""

    async def asking(ask):
        return await ask("open_query", **arguments)

    assert failure(readers.ask(asking)) == ("narrow", "arguments_unfit")
    assert readers.log[-1]["principal"] == "ana"
    assert readers.log[-1]["state"] == "arguments_unfit"


def test_schema_of_every_tool_says_that_it_takes_nothing_else(readers):
    async def asking(ask):
        return (await ask.client.list_tools()).tools

    tools = readers.ask(asking)

    assert len(tools) == 13
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)


def test_arguments_as_json_text_are_taken_for_what_they_say(readers):
    where = [{"field": "region", "value": "eu"}]

    async def asking(ask):
        return [
            await ask("open_query", scan="customers", view="screening", where=given)
            for given in (where, json.dumps(where))
        ]

    plain, text = readers.ask(asking)

    assert text["query"] == plain["query"]
    assert text["summary"] == plain["summary"]


def gone(path):
    path.unlink()


def half_written(path):
    """Cut in the middle of a line, before the view's own columns are hidden."""
    text = path.read_text()
    path.write_text(text[: text.index("hide") + 6])


def doubled(path):
    path.write_text(path.read_text() + "principals: {}\n")


def empty(path):
    path.write_text("\n")


def no_text(path):
    path.write_bytes(b"\xff\xfe")


def unlisted_view(path):
    path.write_text(path.read_text().replace("- active", "- nowhere"))


@pytest.mark.parametrize("spoil", [gone, half_written, doubled, empty, no_text, unlisted_view])
def test_policy_that_is_none_answers_nobody_until_it_is_mended(readers, spoil):
    good = readers.path.read_text()

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        spoil(readers.path)
        told = [
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("list_scans"),
            await ask("conclude", handle=opened["result_handle"]),
        ]
        readers.path.write_text(good)
        return told, await ask("read_page", cursor=opened["first_cursor"])

    told, mended = readers.ask(asking)

    assert [failure(each) for each in told] == [("ask_for_access", "policy_unusable")] * 3
    assert str(readers.path) not in json.dumps(told)
    assert "policy" in readers.log[-2]["detail"]
    assert mended["represents"] == "page"


def test_policy_that_is_none_fails_over_http_by_its_own_name(readers):
    async def asking(ask):
        gone(readers.path)
        return await ask("list_scans")

    assert failure(readers.over_http(asking)) == ("ask_for_access", "policy_unusable")


def damaged(ledger):
    ledger.write_bytes(b"no database at all" * 400)


@pytest.mark.parametrize("spoil", [damaged, gone])
def test_ledger_that_is_spoilt_answers_nobody(readers, spoil):
    """A lost one is not begun anew in mid-session: that would begin every budget anew."""

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        spoil(readers.folder / "ledger.sqlite")
        return [
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("open_query", scan="customers", view="screening"),
            await ask("conclude", handle=opened["result_handle"]),
        ]

    told = readers.ask(asking)

    assert [failure(each) for each in told] == [("stop", "ledger_unusable")] * 3
    assert "sqlite" not in json.dumps(told)


def test_call_that_cannot_be_logged_is_not_answered(readers):
    log = readers.folder / "audit.jsonl"

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        log.unlink()
        log.mkdir()
        told = [
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("open_query", scan="nowhere"),
            await ask("list_scans"),
        ]
        log.rmdir()
        return told, await ask("list_scans")

    told, again = readers.ask(asking)

    assert [failure(each) for each in told] == [("stop", "not_logged")] * 3
    assert again["represents"] == "list"


def test_records_that_are_spoilt_are_told_of_without_paths_or_values(own_readers):
    readers = own_readers

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        lake = readers.walked.workspace.project.lake
        for file in readers.folder.parents[1].rglob("*.parquet"):
            file.write_bytes(b"")
        return lake, await ask("read_page", cursor=opened["first_cursor"])

    lake, told = readers.ask(asking)

    assert failure(told) == ("stop", "evidence_disagrees")
    assert lake not in json.dumps(told)
    assert "parquet" not in json.dumps(told)


def test_handle_in_a_failed_call_stands_in_the_log_by_its_digest(readers):
    async def opening(ask):
        return (await ask("open_query", scan="customers", view="screening"))["result_handle"]

    handle = readers.ask(opening)

    async def replaying(ask):
        return await ask("conclude", handle=handle)

    readers.ask(replaying, who="bob")
    opened, replayed = readers.log

    assert replayed["state"] == "handle_unknown"
    assert (replayed["principal"], replayed["handle"]) == ("bob", opened["handle"])
    assert handle not in json.dumps(readers.log)


def test_receipt_is_read_by_a_generations_name_and_no_path(readers):
    async def asking(ask):
        names = ("../customers/x", "20260101T000000Z", "../../keys")
        return [await ask("read_receipt", scan="customers", generation=name) for name in names]

    told = readers.ask(asking, who="eve")

    assert [failure(each) for each in told] == [("narrow", "no_receipt")] * 3


def test_scan_that_is_not_granted_and_scan_that_is_not_there_are_told_alike(readers):
    async def asking(ask):
        return [await ask("open_query", scan=name) for name in ("secrets", "customers2")]

    one, other = readers.ask(asking)

    assert failure(one) == ("ask_for_access", "not_granted")
    assert one["failure"]["message"].replace("secrets", "customers2") == other["failure"]["message"]


def test_rows_of_no_proven_whole_are_labelled_and_its_claims_are_partial(things):
    rows = [[b'{"id":"a","n":1}'], [b'{"id":"b","n":2}']]
    readers = things(rows, {"contract.consistency": "live", "source.snapshot": ...})

    async def asking(ask):
        whole = await ask("open_query", scan="things")
        accept = "records_encountered_in_live_traversal"
        nobody = [{"field": "n", "value": 3}]
        opened = await ask("open_query", scan="things", accept=accept)
        absent = await ask("open_query", scan="things", accept=accept, where=nobody)
        return (
            whole,
            await rows_of(ask, opened),
            await ask("read_record", handle=opened["result_handle"], row=1),
            await ask("conclude", handle=absent["result_handle"]),
            await ask("aggregate", scan="things", accept=accept),
        )

    whole, items, full, absent, figures = readers.ask(asking, who="eve")

    assert failure(whole) == ("stop", "not_proven")
    for values in (*(each["values"] for each in items), full["values"]):
        assert values["_coverage_status"] == "unknown"
        assert values["_conclusion_scope"] == "records_encountered_in_live_traversal"
        assert values["_receipt_id"].startswith("sha256:")
    assert absent["claim"] == "partial_no_match"
    assert "could change while it was read" in absent["statement"]
    assert "no proven whole" in figures["statement"]


@pytest.mark.parametrize(("who", "view"), [("ana", "screening"), ("eve", "whole")])
def test_handle_whose_receipt_was_superseded_is_opened_again(own_readers, who, view):
    """Its pages were judged again: whatever it is asked, it says so, of rows or of the whole."""
    readers, walked = own_readers, own_readers.walked

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view=view)
        handle, cursor = opened["result_handle"], opened["first_cursor"]
        await ask("read_page", cursor=cursor)
        restage(walked.scan, walked.generation, workspace=walked.workspace)
        told = [
            await ask("read_page", cursor=cursor),
            await ask("read_record", handle=handle, row=1),
            await ask("judge", handle=handle, verdicts={"1": "match"}),
            await ask("conclude", handle=handle),
        ]
        return told, opened, await ask("open_query", scan="customers", view=view)

    told, opened, fresh = readers.ask(asking, who=who)

    assert [failure(each) for each in told] == [("restart", "receipt_superseded")] * 4
    assert fresh["ground"]["receipt_id"] != opened["ground"]["receipt_id"]
