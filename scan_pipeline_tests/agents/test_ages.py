"""Age in every answer: late data is told of, and refused where the policy bounds it."""

from scan_pipeline_tests.agents.conftest import failure

NIGHTLY = {"schedule": {"cron": "0 2 * * *", "timezone": "UTC"}}


def test_late_data_says_so_and_a_bound_in_the_policy_refuses_it_at_the_next_call(things):
    """The bench walks at 02:00 and the desk asks at 09:00, and again two days later."""
    readers = things([[b'{"id":"a","n":1}']], NIGHTLY)

    async def asking(ask):
        opened = await ask("open_query", scan="things")
        return opened, await ask("list_scans")

    fresh, _ = readers.ask(asking, who="eve")
    readers.clock.sleep(48 * 3600)
    late, listed = readers.ask(asking, who="eve")

    async def bounded(ask):
        def bound(policy):
            policy["scans"]["things"]["max_age_seconds"] = 36 * 3600

        opened = await ask("open_query", scan="things")
        readers.change(bound)
        return (
            await ask("read_page", cursor=opened["first_cursor"]),
            await ask("open_query", scan="things"),
        )

    page, query = readers.ask(bounded, who="eve")

    assert (fresh["ground"]["late"], fresh["ground"]["age_seconds"]) == (None, 7 * 3600)
    word = "data of 3 nights ago is late: no generation since 2026-11-30, one is due every night"
    assert late["ground"]["late"] == word
    assert word in late["statement"]
    assert listed["scans"][0]["statement"].startswith("data of 3 nights ago, generation 2026")
    assert failure(page) == failure(query) == ("stop", "too_old")
    assert "the policy allows at most 1 day, 12:00:00" in query["failure"]["message"]
