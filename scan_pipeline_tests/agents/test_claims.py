"""No caller raises a claim: what was inspected decides, and whose it is."""

import json
from pathlib import Path

import pytest

from scan_pipeline.stages.erase import erase
from scan_pipeline_tests.agents.conftest import failure, rows_of

EU = [{"field": "region", "value": "eu"}]


async def opened_by(ask, **arguments):
    return await ask("open_query", scan="customers", view="screening", **arguments)


@pytest.mark.parametrize("stopping", [{"policy": "find_one"}, {"policy": "find_up_to", "n": 3}])
def test_reader_that_stopped_early_concludes_no_absence(readers, stopping):
    async def asking(ask):
        opened = await opened_by(ask, where=EU, stopping=stopping)
        handle = opened["result_handle"]
        items = await rows_of(ask, opened)
        beyond = await ask("read_record", handle=handle, row=len(items) + 1)
        verdicts = {str(each["row"]): "no_match" for each in items}
        await ask("judge", handle=handle, verdicts=verdicts)
        return items, beyond, await ask("conclude", handle=handle)

    items, beyond, concluded = readers.ask(asking)

    assert len(items) == stopping.get("n", 1)
    assert failure(beyond) == ("narrow", "row_unknown")
    assert concluded["claim"] == "partial_no_match"


def test_handle_of_figures_gives_no_rows(readers):
    async def asking(ask):
        figures = await ask("aggregate", scan="customers", view="screening", by=["region"])
        handle = figures["result_handle"]
        return (
            await ask("read_record", handle=handle, row=1),
            await ask("judge", handle=handle, verdicts={"1": "no_match"}),
            await ask("conclude", handle=handle),
        )

    record, judged, concluded = readers.ask(asking)

    assert failure(record) == ("narrow", "row_unknown")
    assert failure(judged) == ("narrow", "row_not_read")
    assert concluded["claim"] == "complete_aggregate"


@pytest.mark.parametrize("row", ["0", "-1", "100000", str(10**30)])
def test_row_that_there_is_not_has_no_verdict(readers, row):
    async def asking(ask):
        opened = await opened_by(ask)
        return await ask("judge", handle=opened["result_handle"], verdicts={row: "no_match"})

    assert failure(readers.ask(asking)) == ("narrow", "row_not_read")


def test_row_named_as_too_large_was_not_read_until_it_is_read_in_full(things):
    rows = [[json.dumps({"id": "a", "n": 1, "s": "x" * 9_000}).encode()]]
    columns = [
        {"name": "id", "type": "string", "nullable": False},
        {"name": "n", "type": "int64"},
        {"name": "s", "type": "string"},
    ]
    readers = things(rows, {"record_schema": columns}, limits={"response_bytes": 4_000})

    async def asking(ask):
        opened = await ask("open_query", scan="things")
        handle = opened["result_handle"]
        items = await rows_of(ask, opened)
        early = await ask("judge", handle=handle, verdicts={"1": "no_match"})
        await ask("read_record", handle=handle, row=1)
        late = await ask("judge", handle=handle, verdicts={"1": "no_match"})
        return items, early, late, await ask("conclude", handle=handle)

    items, early, late, concluded = readers.ask(asking, who="eve")

    assert items[0]["values"] is None
    assert failure(early) == ("narrow", "row_not_read")
    assert late["not_matched"] == 1
    assert concluded["claim"] == "complete_no_match"


def test_verdict_that_is_replaced_counts_once_and_unsure_is_none(readers):
    async def asking(ask):
        opened = await opened_by(ask, where=EU)
        handle = opened["result_handle"]
        items = await rows_of(ask, opened)
        rows = [str(each["row"]) for each in items]
        told = []
        for verdict in ("match", "no_match", "unsure"):
            await ask("judge", handle=handle, verdicts={**dict.fromkeys(rows, "no_match")})
            await ask("judge", handle=handle, verdicts={rows[0]: verdict})
            told.append(await ask("conclude", handle=handle))
        return told, opened

    (match, no_match, unsure), opened = readers.ask(asking)
    count = opened["summary"]["matching_count"]

    assert (match["claim"], match["matches"], match["inspected"]) == ("verified_match", 1, count)
    assert (no_match["claim"], no_match["inspected"]) == ("complete_no_match", count)
    assert (unsure["claim"], unsure["inspected"]) == ("partial_no_match", count - 1)
    assert "1 were not judged" in unsure["statement"]


def test_verdict_after_a_conclusion_changes_the_next_and_not_the_signed_one(readers):
    async def asking(ask):
        opened = await opened_by(ask, where=EU)
        handle = opened["result_handle"]
        before = await ask("conclude", handle=handle)
        await ask("read_page", cursor=opened["first_cursor"])
        await ask("judge", handle=handle, verdicts={"1": "no_match"})
        return before, await ask("conclude", handle=handle)

    before, after = readers.ask(asking)

    assert before["evaluated_by"] == "engine"
    assert (after["evaluated_by"], after["claim"]) == ("reader", "partial_no_match")
    assert before["claim_id"] != after["claim_id"]


def test_equal_conclusions_under_a_handle_are_one_claim(readers):
    """Until what was inspected, or the policy, is another; or the claim is old, or gone."""
    claims = Path(readers.walked.workspace.project.lake) / "claims" / "customers"

    async def asking(ask):
        opened = await opened_by(ask, where=EU)
        handle = opened["result_handle"]

        async def concluded():
            return (await ask("conclude", handle=handle))["claim_id"]

        async def judged(verdict):
            await ask("judge", handle=handle, verdicts={"1": verdict})
            return await concluded()

        first = {await concluded() for _ in range(3)}
        await ask("read_page", cursor=opened["first_cursor"])
        match, again, other = [await judged(each) for each in ("match", "match", "no_match")]
        back = await judged("match")
        (claims / f"{back}.json").unlink()
        anew = await concluded()
        readers.change(lambda policy: policy.update(limits={"page_size": 49}))
        changed = await concluded()
        readers.clock.sleep(13 * 3600)
        return first, match, again, other, back, anew, changed, await concluded()

    before = {each.stem for each in claims.glob("*")}
    first, match, again, other, back, anew, changed, late = readers.ask(asking)
    after = {each.stem for each in claims.glob("*")}

    assert len(first) == 1
    assert match == again == back
    assert len({*first, match, other, anew, changed, late}) == 6
    assert {*first, other, anew, changed, late} <= after
    assert after - before <= {*first, other, anew, changed, late}


def test_judgement_by_some_columns_says_by_which(readers):
    async def asking(ask):
        opened = await opened_by(ask, columns=["region"], where=EU)
        await ask("read_page", cursor=opened["first_cursor"], page_size=1)
        await ask("judge", handle=opened["result_handle"], verdicts={"1": "no_match"})
        return await ask("conclude", handle=opened["result_handle"])

    assert " by region alone " in readers.ask(asking)["statement"]


def test_plausible_page_before_its_contradiction_concludes_partially(things):
    """Page one holds one status; the row that is otherwise comes on the last."""
    rows = [json.dumps({"id": f"r-{n:02}", "n": int(n == 24)}).encode() for n in range(25)]
    readers = things([rows], limits={"page_size": 10})

    async def asking(ask):
        opened = await ask("open_query", scan="things")
        handle, cursor, told = opened["result_handle"], opened["first_cursor"], []
        while cursor:
            page = await ask("read_page", cursor=cursor)
            verdicts = {
                str(each["row"]): "match" if each["values"]["n"] else "no_match"
                for each in page["page"]["items"]
            }
            await ask("judge", handle=handle, verdicts=verdicts)
            told.append(await ask("conclude", handle=handle))
            cursor = page["page"]["next_cursor"]
        return told

    told = readers.ask(asking, who="eve")

    assert [each["claim"] for each in told] == [
        "partial_no_match",
        "partial_no_match",
        "verified_match",
    ]
    assert "15 were not judged, and any may match" in told[0]["statement"]
    assert told[-1]["matches"] == 1


def test_conclusion_with_the_run_used_up_says_so(readers):
    readers.change(lambda policy: policy.update(limits={"run_pages": 1, "page_size": 5}))

    async def asking(ask):
        opened = await opened_by(ask)
        page = await ask("read_page", cursor=opened["first_cursor"])
        verdicts = {str(each["row"]): "no_match" for each in page["page"]["items"]}
        await ask("judge", handle=opened["result_handle"], verdicts=verdicts)
        refused = await ask("read_page", cursor=page["page"]["next_cursor"])
        return refused, await ask("conclude", handle=opened["result_handle"])

    refused, concluded = readers.ask(asking)

    assert failure(refused) == ("stop", "run_budget_exhausted")
    assert concluded["claim"] == "incomplete_budget_exhausted"


@pytest.mark.parametrize(
    "edit",
    [
        lambda policy: policy["scans"]["customers"]["views"]["screening"].update(hide=["email"]),
        lambda policy: policy["scans"]["customers"]["views"]["screening"].update(
            needs_one_of=["customer_id"]
        ),
        lambda policy: policy["principals"]["ana"].update(tenant="globex"),
    ],
)
def test_policy_that_changes_what_is_seen_or_asked_ends_a_handle(readers, edit):
    async def asking(ask):
        opened = await opened_by(ask)
        readers.change(edit)
        return [
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("read_record", handle=opened["result_handle"], row=1),
            await ask("conclude", handle=opened["result_handle"]),
        ]

    assert [failure(each) for each in readers.ask(asking)] == [("restart", "access_changed")] * 3


def test_handle_that_expired_is_opened_again(readers):
    async def asking(ask):
        opened = await opened_by(ask)
        readers.clock.sleep(24 * 3600)
        return await ask("conclude", handle=opened["result_handle"])

    assert failure(readers.ask(asking)) == ("restart", "handle_expired")


def test_nothing_is_complete_of_a_collection_of_which_a_record_was_erased(things):
    """It was there, and may have matched; and no handle of before counts it any more."""
    readers = things([[b'{"id":"t%d","n":%d}' % (n, n) for n in range(5)]])
    walked = readers.walked
    one = [{"field": "id", "value": "t1"}]

    async def conclude(ask, handle):
        figures = await ask("aggregate", scan="things")
        return (
            await ask("conclude", handle=handle),
            await ask("conclude", handle=figures["result_handle"]),
        )

    async def before(ask):
        gone = await ask("open_query", scan="things", where=[{"field": "id", "value": "t9"}])
        shown = await ask("open_query", scan="things", where=one)
        return shown["result_handle"], await conclude(ask, gone["result_handle"])

    async def after(ask):
        opened = await ask("open_query", scan="things", where=one)
        return (
            await ask("conclude", handle=handle),
            opened,
            await conclude(ask, opened["result_handle"]),
        )

    handle, whole = readers.ask(before, who="eve")
    readers.clock.sleep(60)
    walked.workspace.clock.now = readers.clock.now
    erase(walked.scan, ("t1",), because="request 7", by=None, workspace=walked.workspace)
    readers.clock.sleep(60)
    held, opened, concluded = readers.ask(after, who="eve")

    assert [each["claim"] for each in whole] == ["complete_no_match", "complete_aggregate"]
    assert failure(held) == ("restart", "rows_changed")
    assert opened["ground"]["redacted"].startswith("1 record redacted on 2026-11-30")
    assert "; 1 record redacted on" in opened["statement"]
    assert [each["claim"] for each in concluded] == ["partial_no_match", "partial_aggregate"]
