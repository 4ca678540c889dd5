"""The official client over streamable HTTP: two tenants, and what crosses no line."""

import asyncio
from pathlib import Path

import httpx2

from scan_pipeline.agents.serving import http_server
from scan_pipeline.simulator.server import running_app
from scan_pipeline_tests.agents.conftest import TOKENS, failure


def spoil(readers):
    """Overwrite every file of the records with as many bytes; return what puts them back."""
    folder = Path(readers.walked.workspace.project.lake) / "staging"
    files = {file: file.read_bytes() for file in folder.rglob("*.parquet")}
    assert files
    for file, content in files.items():
        file.write_bytes(bytes(len(content)))
    return lambda: [file.write_bytes(content) for file, content in files.items()]


def test_each_tenant_sees_its_own_rows_and_the_two_are_the_whole(readers):
    async def counts(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        return opened["summary"]["population"], opened["summary"]["matching_count"]

    acme, globex = readers.ask(counts), readers.ask(counts, who="bob")

    async def whole(ask):
        return (await ask("open_query", scan="customers"))["summary"]["population"]

    assert acme[0] == acme[1]
    assert acme[0] + globex[0] == readers.ask(whole, who="eve") == 1_000
    assert acme[0] > 0 < globex[0]


def test_pages_of_a_query_are_its_rows_each_once_in_order(readers):
    async def asking(ask):
        opened = await ask(
            "open_query",
            scan="customers",
            view="screening",
            where=[{"field": "schema_version", "op": "ne", "value": 3}],
            columns=["customer_id", "region"],
            order=[{"field": "region", "descending": True}],
        )
        cursor, rows = opened["first_cursor"], []
        while cursor:
            page = await ask("read_page", cursor=cursor, page_size=37)
            rows += page["page"]["items"]
            cursor = page["page"]["next_cursor"]
            assert page["summary"]["matching_count"] == opened["summary"]["matching_count"]
            assert page["summary"]["has_more"] == (cursor is not None)
        return opened, rows

    opened, rows = readers.ask(asking)
    regions = [row["values"]["region"] for row in rows]

    assert len(rows) == opened["summary"]["matching_count"] == len({r["row"] for r in rows})
    assert len({row["values"]["customer_id"] for row in rows}) == len(rows)
    assert regions == sorted(regions, reverse=True)
    assert "_raw" not in rows[0]["values"]


def test_handles_and_cursors_of_another_are_nothing(readers):
    async def opening(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        return opened["result_handle"], opened["first_cursor"]

    handle, cursor = readers.over_http(opening)

    async def replaying(ask):
        return [
            await ask("read_page", cursor=cursor),
            await ask("read_record", handle=handle, row=1),
            await ask("conclude", handle=handle),
            await ask("read_page", cursor="c_never"),
        ]

    told = readers.over_http(replaying, who="bob")

    assert [failure(each)[0] for each in told] == ["restart"] * 4
    # What is another's and what never was are told apart by nothing but the kind of name.
    assert (
        told[0]["failure"]["message"].replace("handle", "cursor") == told[3]["failure"]["message"]
    )


def test_revocation_between_two_pages_acts_at_the_second(readers):
    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        first = await ask("read_page", cursor=opened["first_cursor"], page_size=5)
        readers.change(lambda policy: policy["principals"]["ana"].update(views={}))
        return await ask("read_page", cursor=first["page"]["next_cursor"])

    assert failure(readers.ask(asking)) == ("ask_for_access", "not_granted")


def test_token_that_is_revoked_gets_no_answer_at_all(readers):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {
        "authorization": f"Bearer {TOKENS['ana']}",
        "accept": "application/json, text/event-stream",
    }
    app = http_server(readers.desk, url="http://readers.example/mcp").streamable_http_app()
    with running_app(app, lifespan="on") as base_url:
        before = httpx2.post(f"{base_url}/mcp", json=asked, headers=headers)
        readers.change(lambda policy: policy["principals"]["ana"].update(revoked=True))
        after = httpx2.post(f"{base_url}/mcp", json=asked, headers=headers)

    assert before.status_code != 401
    assert after.status_code == 401


def test_hidden_column_is_neither_shown_asked_about_nor_ordered_by(readers):
    async def asking(ask):
        shown = await ask("describe_scan", scan="customers", view="screening")
        email = {"field": "email", "op": "starts_with", "value": "a"}
        return (
            shown["columns"],
            await ask("open_query", scan="customers", view="screening", where=[email]),
            await ask("open_query", scan="customers", view="screening", columns=["email"]),
            await ask("open_query", scan="customers", view="screening", order=[{"field": "email"}]),
            await ask("aggregate", scan="customers", view="screening", by=["email"]),
        )

    columns, *told = readers.ask(asking)

    assert "email" not in columns
    assert [failure(each) for each in told] == [("narrow", "field_unknown")] * 4
    assert all("email" not in each["failure"]["message"].split("expected")[1] for each in told)


def test_unbounded_query_is_refused_where_the_policy_wants_a_bound(readers):
    async def asking(ask):
        free = await ask("open_query", scan="customers", view="bounded")
        nulls = [{"field": "region", "op": "not_null"}]
        loose = await ask("open_query", scan="customers", view="bounded", where=nulls)
        eu = [{"field": "region", "value": "eu"}]
        bound = await ask("open_query", scan="customers", view="bounded", where=eu)
        return failure(free), failure(loose), bound["summary"]["matching_count"]

    free, loose, count = readers.ask(asking, who="bob")

    assert free == loose == ("narrow", "query_unbounded")
    assert count > 0


def test_row_that_may_be_reclassified_is_not_read_from_the_older_generation(own_readers):
    readers = own_readers

    async def opening(ask):
        opened = await ask("open_query", scan="customers", view="active")
        return opened["result_handle"], opened["first_cursor"]

    handle, cursor = readers.ask(opening)
    assert readers.walked.again().receipt.accepted

    async def reading(ask):
        return (
            await ask("read_record", handle=handle, row=1),
            await ask("read_page", cursor=cursor),
        )

    told = readers.ask(reading)

    assert [failure(each) for each in told] == [("restart", "rows_may_be_reclassified")] * 2


def test_conclusion_is_partial_until_every_row_was_judged(readers):
    async def asking(ask):
        opened = await ask(
            "open_query",
            scan="customers",
            view="screening",
            where=[{"field": "region", "value": "eu"}],
        )
        handle, cursor, claims = opened["result_handle"], opened["first_cursor"], []
        while cursor:
            page = await ask("read_page", cursor=cursor)
            rows = [item["row"] for item in page["page"]["items"]]
            await ask("judge", handle=handle, verdicts={str(row): "no_match" for row in rows})
            claims.append(await ask("conclude", handle=handle))
            cursor = page["page"]["next_cursor"]
        last = opened["summary"]["matching_count"]
        await ask("judge", handle=handle, verdicts={str(last): "match"})
        return claims, await ask("conclude", handle=handle)

    claims, contradicted = readers.ask(asking)

    assert len(claims) > 2
    assert {each["claim"] for each in claims[:-1]} == {"partial_no_match"}
    assert claims[-1]["claim"] == "complete_no_match"
    assert claims[-1]["evaluated_by"] == "reader"
    assert (contradicted["claim"], contradicted["matches"]) == ("verified_match", 1)


def test_verdict_on_a_row_that_was_never_given_is_refused(readers):
    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        return await ask("judge", handle=opened["result_handle"], verdicts={"1": "no_match"})

    assert failure(readers.ask(asking)) == ("narrow", "row_not_read")


def test_five_answers_that_fit_and_a_sixth_that_does_not(own_readers):
    """The records are spoilt before the sixth: an engine that was asked would say so."""
    readers = own_readers
    readers.change(
        lambda policy: policy.update(
            limits={"response_bytes": 4_000, "run_bytes": 23_000, "page_size": 50}
        )
    )

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        cursor, given = opened["first_cursor"], []
        for _ in range(5):
            given.append(await ask("read_page", cursor=cursor))
            cursor = given[-1]["page"]["next_cursor"]
        put_back = spoil(readers)
        given.append(await ask("read_page", cursor=cursor))
        put_back()
        return given, await ask("conclude", handle=opened["result_handle"])

    given, concluded = readers.ask(asking)
    *pages, refused = given

    assert len(pages) == 5
    assert all(page["limits"]["response_bytes"] <= 4_000 for page in pages)
    assert not any(page["limits"]["truncated"] for page in pages)
    assert failure(refused) == ("narrow", "run_budget_exhausted")
    assert [line["state"] for line in readers.log].count("run_budget_exhausted") == 1
    assert concluded["claim"] == "verified_match"


def test_every_tool_says_that_a_page_is_not_the_collection(readers):
    async def asking(ask):
        tools = (await ask.client.list_tools()).tools
        return {tool.name: tool for tool in tools}

    tools = readers.ask(asking)

    assert set(tools) == {
        "list_scans",
        "describe_scan",
        "read_receipt",
        "open_query",
        "read_page",
        "read_record",
        "aggregate",
        "judge",
        "conclude",
        "propose_action",
        "list_proposals",
        "withdraw_proposal",
        "release_proposal",
    }
    assert all(tool.output_schema for tool in tools.values())
    assert "never the collection" in tools["open_query"].description


def test_log_names_who_and_how_much_and_no_value_or_handle(readers):
    async def asking(ask):
        opened = await ask(
            "open_query",
            scan="customers",
            view="screening",
            where=[{"field": "customer_id", "value": "customer-17"}],
        )
        await ask("read_page", cursor=opened["first_cursor"] or "c_none")
        await ask("open_query", scan="secrets")
        return opened

    opened = readers.ask(asking)
    log = (readers.folder / "audit.jsonl").read_text()

    assert log.count("\n") == 3
    assert '"principal":"ana"' in log
    assert '"tenant":"acme"' in log
    assert '"state":"not_granted"' in log
    for secret in ("customer-17", opened["result_handle"], *TOKENS.values()):
        assert secret not in log


def test_two_clients_at_once_spend_one_budget_each(readers):
    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        pages = await asyncio.gather(
            *(ask("read_page", cursor=opened["first_cursor"], page_size=3) for _ in range(4))
        )
        return [page["page"]["items"] for page in pages]

    first, *others = readers.ask(asking)

    assert all(other == first for other in others)
