"""Proposals over the official client, and their release against a source with entity tags."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from scan_pipeline.agents.action_desk import ActionDesk
from scan_pipeline.agents.authentication import launching_user
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.policy import load_policy
from scan_pipeline.agents.releasing import release_by_person, withdraw_by_person
from scan_pipeline.agents.serving import audit_log, create_desk
from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.server import running_app
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.workspace import utc_now
from scan_pipeline_tests.agents.conftest import POLICY, Readers, failure
from scan_pipeline_tests.agents.records_app import RecordsApp

pytestmark = pytest.mark.long

SECRET = "write-secret-token"  # of the tests alone


@dataclass
class Office:
    """Readers, the source that their proposals go to, and the person who releases."""

    readers: Readers
    app: RecordsApp
    url: str

    @property
    def desk(self) -> ActionDesk:
        return ActionDesk(self.readers.desk, log=audit_log(self.readers.desk.workspace))

    def change(self, **facts: Any) -> None:
        """Change the action."""
        self.readers.change(lambda policy: policy["actions"]["close"].update(facts))

    def request(self, **facts: Any) -> None:
        """Change the action's request."""
        self.readers.change(lambda policy: policy["actions"]["close"]["request"].update(facts))

    def propose(
        self, *, who: str = "ana", read: bool = True, row: int = 1, http: bool = False
    ) -> dict[str, Any]:
        """Open a query, read one record in full, and propose to close it."""

        async def asking(ask):
            opened = await ask("open_query", scan="customers", view="screening")
            handle = opened["result_handle"]
            values = {}
            if read:
                values = (await ask("read_record", handle=handle, row=row))["values"]
            proposed = await ask("propose_action", handle=handle, row=row, action="close")
            return {**proposed, "values": values}

        ask = self.readers.over_http if http else self.readers.ask
        return ask(asking, who=who)

    def call(
        self, tool: str, *, who: str = "ana", http: bool = False, **arguments: Any
    ) -> dict[str, Any]:
        async def asking(ask):
            return await ask(tool, **arguments)

        ask = self.readers.over_http if http else self.readers.ask
        return ask(asking, who=who)

    def release(self, proposed: dict[str, Any], *, by: str = "eve") -> str:
        """Release as a person; return the state, or the code of the refusal."""
        try:
            return release_by_person(self.desk, by, proposal=proposed["proposal"]).state
        except ReaderError as error:
            return error.code

    def state(self, proposed: dict[str, Any]) -> str:
        found = self.desk.proposals.find(proposed["proposal"])
        assert found is not None
        return found.state


def action(url: str) -> dict[str, Any]:
    return {
        "scan": "customers",
        "proposers": ["ana"],
        "releasers": ["eve"],
        "request": {
            "url": f"{url}/v1/customers/{{customer_id}}/close",
            "body": {"reason": "dormant"},
            "fields": {"area": "region"},
            "auth": {"bearer": {"env": "WRITE_TOKEN"}},
            "idempotency_header": "Idempotency-Key",
        },
        "re_read": {"url": f"{url}/v1/customers/{{customer_id}}", "send_etag": True},
    }


@contextmanager
def opened_office(readers: Readers) -> Iterator[Office]:
    rows = population("customers", 1_000)
    app = RecordsApp(records={f"customer-{row.number}": row.raw for row in rows})
    with running_app(app) as url:
        readers.change(lambda policy: policy.update(actions={"close": action(url)}))
        workspace = readers.desk.workspace
        workspace.environ = {**workspace.environ, "WRITE_TOKEN": SECRET}
        yield Office(readers=readers, app=app, url=url)


@pytest.fixture
def office(readers: Readers) -> Iterator[Office]:
    """An office over the walk that the module shares."""
    with opened_office(readers) as opened:
        yield opened


@pytest.fixture
def own_office(own_readers: Readers) -> Iterator[Office]:
    """An office over a walk of the test's own, which it may spoil."""
    with opened_office(own_readers) as opened:
        yield opened


def test_record_that_was_not_read_in_full_is_proposed_nothing_about(office):
    assert failure(office.propose(read=False)) == ("narrow", "not_read_in_full")


def test_released_proposal_is_sent_once_with_key_condition_and_secret(office):
    proposed = office.propose(http=True)
    customer = proposed["values"]["customer_id"]

    assert proposed["state"] == "proposed"
    assert "a person releases it" in proposed["waits_for"]
    assert office.app.received == []
    assert office.release(proposed) == "done"
    assert office.release(proposed) == "not_open"

    (sent,) = office.app.changes
    assert sent.method == "POST"
    assert sent.path == f"/v1/customers/{customer}/close"
    assert json.loads(sent.body) == {"area": proposed["values"]["region"], "reason": "dormant"}
    assert sent.headers["if-match"] == office.app.tag(customer)
    assert sent.headers["authorization"] == f"Bearer {SECRET}"
    assert len(sent.headers["idempotency-key"]) == 32
    assert office.app.closed == [customer]


def test_what_is_done_is_not_proposed_again_under_another_handle(office):
    assert office.release(office.propose()) == "done"

    assert failure(office.propose()) == ("stop", "already_proposed")
    assert len(office.app.changes) == 1


def test_nothing_is_released_until_every_row_that_matches_was_judged(office):
    async def asking(ask):
        opened = await ask(
            "open_query",
            scan="customers",
            view="screening",
            where=[{"field": "region", "value": "eu"}],
        )
        handle, cursor, told = opened["result_handle"], opened["first_cursor"], []
        await ask("read_record", handle=handle, row=1)
        proposed = await ask("propose_action", handle=handle, row=1, action="close")
        while cursor:
            page = await ask("read_page", cursor=cursor)
            rows = [item["row"] for item in page["page"]["items"]]
            verdicts = {str(row): "match" if row == 1 else "no_match" for row in rows}
            await ask("judge", handle=handle, verdicts=verdicts)
            cursor = page["page"]["next_cursor"]
            if cursor:
                told.append(office.release(proposed))
        await ask("judge", handle=handle, verdicts={"1": "no_match"})
        told.append(office.release(proposed))
        await ask("judge", handle=handle, verdicts={"1": "match"})
        return told, office.release(proposed)

    (*early, unfit), last = office.readers.ask(asking)

    assert len(early) > 2
    assert set(early) == {"population_not_accounted_for"}
    assert unfit == "row_not_a_match"
    assert last == "done"
    assert len(office.app.changes) == 1


def test_where_the_policy_wants_a_reader_the_engine_does_not_account_for_the_population(office):
    office.change(accounted_by="reader")

    assert office.release(office.propose()) == "population_not_accounted_for"
    assert office.app.received == []


def test_records_of_no_proven_whole_are_acted_upon_by_nobody(bench, office):
    live = bench.walk(
        edits={
            "source.snapshot": ...,
            "source.params": {"view": "live"},
            "contract.consistency": "live",
            "contract.accept": {"scope": "records_encountered_in_live_traversal"},
        }
    )
    assert live.receipt.coverage_status == "unknown"
    live.workspace.environ = office.readers.desk.workspace.environ
    path = office.readers.path
    desk = create_desk(live.workspace, find=lambda _: live.scan, policy=lambda: load_policy(path))
    there = Office(Readers(desk=desk, walked=live, path=path), office.app, office.url)

    async def asking(ask):
        opened = await ask(
            "open_query",
            scan="customers",
            view="screening",
            accept="records_encountered_in_live_traversal",
        )
        await ask("read_record", handle=opened["result_handle"], row=1)
        return await ask("propose_action", handle=opened["result_handle"], row=1, action="close")

    assert there.release(there.readers.ask(asking)) == "population_not_accounted_for"
    assert office.app.received == []


def test_record_that_changed_since_is_stale_and_nothing_is_sent(office):
    proposed = office.propose()
    office.app.edit(proposed["values"]["customer_id"], status="closed")

    assert office.release(proposed) == "stale"
    assert office.release(proposed) == "not_open"
    assert office.app.changes == []


def test_record_that_is_gone_is_stale(office):
    proposed = office.propose()
    del office.app.records[proposed["values"]["customer_id"]]

    assert office.release(proposed) == "stale"
    assert office.app.changes == []


def test_record_in_another_order_and_spacing_is_the_same_version(office):
    proposed = office.propose()
    customer = proposed["values"]["customer_id"]
    members = json.loads(office.app.records[customer])
    turned = dict(reversed(members.items()))
    office.app.records[customer] = json.dumps(turned, indent=2).encode()

    assert office.release(proposed) == "done"


def test_change_between_reading_again_and_acting_is_refused_by_the_source(office):
    proposed = office.propose()
    customer = proposed["values"]["customer_id"]

    def meanwhile(request):
        if request.method != "GET":
            office.app.edit(customer, status="closed")

    office.app.before = meanwhile

    assert office.release(proposed) == "stale"
    assert office.app.closed == []


def test_source_that_wants_a_condition_and_gets_none_refuses(office):
    office.readers.change(lambda policy: policy["actions"]["close"]["re_read"].pop("send_etag"))
    office.app.wants_condition = True
    proposed = office.propose()

    assert office.release(proposed) == "failed"
    found = office.desk.proposals.find(proposed["proposal"])
    assert "428" in found.reason
    assert office.app.closed == []


def test_answer_that_is_lost_is_unknown_until_a_person_has_looked(office):
    office.app.lose = True
    proposed = office.propose()

    assert office.release(proposed) == "unknown"
    assert office.release(proposed) == "not_open"
    assert len(office.app.changes) == 1
    assert failure(office.propose()) == ("stop", "already_proposed")

    looked = withdraw_by_person(office.desk, "eve", proposal=proposed["proposal"])

    assert looked.state == "withdrawn"
    assert office.propose()["state"] == "proposed"


@pytest.mark.parametrize(
    ("status", "state"), [(500, "unknown"), (303, "unknown"), (409, "failed"), (412, "stale")]
)
def test_state_is_what_the_answer_says(office, status, state):
    office.app.answer = status

    assert office.release(office.propose()) == state


def test_source_that_cannot_be_reached_leaves_the_proposal_open(readers):
    with opened_office(readers) as office:
        proposed = office.propose()

    assert office.release(proposed) == "version_unknown"
    assert office.state(proposed) == "proposed"


def test_redirect_is_followed_nowhere(office):
    elsewhere = RecordsApp(records={})
    proposed = office.propose()
    with running_app(elsewhere) as url:
        office.app.answer, office.app.location = 307, f"{url}/v1/customers/x/close"

        assert office.release(proposed) == "failed"
    assert elsewhere.received == []


def test_missing_secret_sends_nothing_and_leaves_the_proposal_open(office):
    proposed = office.propose()
    environ = dict(office.readers.desk.workspace.environ)
    del environ["WRITE_TOKEN"]
    office.readers.desk.workspace.environ = environ

    with pytest.raises(Exception, match="WRITE_TOKEN"):
        office.release(proposed)
    assert office.state(proposed) == "proposed"
    assert office.app.received == []


def test_proposal_counts_in_the_run_and_is_refused_before_anything_is_kept(office):
    """What takes something back is answered whatever is left."""
    proposed = office.propose()
    office.readers.change(lambda policy: policy.update(limits={"run_bytes": 80_000}))

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        handle = opened["result_handle"]
        await ask("read_record", handle=handle, row=2)
        office.readers.change(lambda policy: policy.update(limits={"run_bytes": 70_000}))
        return (
            await ask("propose_action", handle=handle, row=2, action="close"),
            await ask("list_proposals"),
            await ask("release_proposal", proposal=proposed["proposal"]),
            await ask("withdraw_proposal", proposal=proposed["proposal"]),
        )

    *refused, withdrawn = office.readers.ask(asking)

    assert [failure(each) for each in refused] == [("narrow", "run_budget_exhausted")] * 3
    assert withdrawn["state"] == "withdrawn"
    assert len(office.desk.proposals.all()) == 1


def test_proposals_over_the_byte_budget_are_listed_in_parts(office):
    proposed = [office.propose(row=row) for row in range(1, 8)]
    office.readers.change(lambda policy: policy.update(limits={"response_bytes": 3_000}))
    given, after = list[dict[str, Any]](), None
    while not given or after:
        given.append(office.call("list_proposals", after=after))
        after = given[-1]["next_after"]

    names = [each["proposal"] for part in given for each in part["proposals"]]
    assert names == [each["proposal"] for each in proposed]
    assert len(given) > 1
    assert {each["total"] for each in given} == {7}
    assert all(len(json.dumps(part, separators=(",", ":"))) <= 3_000 for part in given)
    strange = office.call("list_proposals", after="pr_never")
    assert failure(strange) == ("stop", "proposal_unknown")


def test_version_of_a_proposal_is_the_one_that_was_read_and_no_digest_of_the_record(office):
    """A digest of the whole record would confirm a guess of a hidden field."""

    async def asking(ask):
        opened = await ask("open_query", scan="customers", view="screening")
        handle = opened["result_handle"]
        read = await ask("read_record", handle=handle, row=1)
        return read, await ask("propose_action", handle=handle, row=1, action="close")

    read, proposed = office.readers.ask(asking)
    (kept,) = office.desk.proposals.all()

    assert proposed["record_version"] == read["record_version"]
    assert kept.version not in json.dumps(proposed)


def test_superseded_receipt_withdraws_what_stood_on_it(own_office):
    first, second = own_office.propose(), own_office.propose(row=2)
    walked = own_office.readers.walked
    restage(walked.scan, walked.generation, workspace=walked.workspace)

    assert own_office.release(first) == "not_open"
    listed = own_office.call("list_proposals")["proposals"]

    assert [each["state"] for each in listed] == ["withdrawn", "withdrawn"]
    assert "superseded" in listed[1]["reason"]
    assert own_office.state(second) == "withdrawn"
    assert own_office.app.received == []


def test_spoilt_receipt_withdraws_what_stood_on_it(own_office):
    proposed = own_office.propose()
    walked = own_office.readers.walked
    for path in Path(walked.workspace.project.lake).rglob(
        f"receipts/**/*{walked.generation}*.json"
    ):
        path.write_bytes(path.read_bytes().replace(b'"sig":"', b'"sig":"AAAA'))

    assert own_office.release(proposed) == "not_open"
    assert own_office.state(proposed) == "withdrawn"
    assert own_office.app.received == []


def test_two_who_release_at_once_send_once(office):
    proposed = office.propose()
    both, told = threading.Barrier(2), list[str]()

    def releasing() -> None:
        both.wait()
        told.append(office.release(proposed))

    threads = [threading.Thread(target=releasing) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(told) == ["done", "not_open"]
    assert len(office.app.changes) == 1


def test_withdrawn_while_it_is_checked_is_not_sent(office):
    """The step to `releasing` names the state it leaves, so that a withdrawal wins the race."""
    proposed = office.propose()

    def meanwhile(request):
        if request.method == "GET":
            withdraw_by_person(office.desk, "eve", proposal=proposed["proposal"])

    office.app.before = meanwhile

    assert office.release(proposed) == "not_open"
    assert office.state(proposed) == "withdrawn"
    assert office.app.changes == []


def test_proposals_stay_on_their_side_of_the_tenant_line(office):
    office.change(proposers=["ana", "bob"], releasers=["bob", "eve"])
    proposed = office.propose(http=True)
    name = proposed["proposal"]

    assert office.call("list_proposals", who="bob", http=True)["proposals"] == []
    for tool in ("withdraw_proposal", "release_proposal"):
        assert failure(office.call(tool, who="bob", http=True, proposal=name)) == (
            "stop",
            "proposal_unknown",
        )
    taken = office.call(
        "propose_action", who="bob", http=True, handle=proposed["handle"], row=1, action="close"
    )
    assert failure(taken) == ("restart", "handle_unknown")
    assert office.release(proposed, by="bob") == "release_not_granted"
    assert office.app.received == []


def test_whoever_may_not_propose_is_told_nothing_of_the_action(office):
    told = office.propose(who="bob")

    assert failure(told) == ("ask_for_access", "action_not_granted")


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda p: p["principals"]["ana"].update(revoked=True), "action_not_granted"),
        (lambda p: p["actions"]["close"].update(proposers=["bob"]), "action_not_granted"),
        (lambda p: p["principals"]["ana"].update(views={}), "not_granted"),
        (lambda p: p["actions"]["close"].update(releasers=["bob"]), "release_not_granted"),
        (lambda p: p["principals"]["eve"].update(revoked=True), "release_not_granted"),
        (lambda p: p["actions"].pop("close"), "action_not_granted"),
    ],
)
def test_policy_that_was_changed_in_between_is_obeyed(office, edit, code):
    proposed = office.propose()
    office.readers.change(edit)

    assert office.release(proposed) == code
    assert office.state(proposed) == "proposed"
    assert office.app.received == []


def test_action_that_became_another_is_withdrawn(office):
    proposed = office.propose()
    office.request(url=f"{office.url}/v1/customers/{{customer_id}}/erase")

    assert office.release(proposed) == "withdrawn"
    assert office.app.received == []


def test_own_proposal_is_withdrawn_and_then_released_by_nobody(office):
    proposed = office.propose()

    told = office.call("withdraw_proposal", proposal=proposed["proposal"])

    assert told["state"] == "withdrawn"
    assert office.release(proposed) == "not_open"
    assert failure(office.call("withdraw_proposal", proposal=proposed["proposal"])) == (
        "stop",
        "not_open",
    )


def test_agent_releases_only_what_the_policy_wants_no_person_for(office):
    proposed = office.propose()

    told = office.call("release_proposal", proposal=proposed["proposal"])
    assert failure(told) == ("ask_for_access", "release_by_person")
    assert office.app.received == []

    office.change(release="automatic", releasers=[])
    assert office.call("release_proposal", proposal=proposed["proposal"])["state"] == "done"


def test_automatic_release_follows_the_proposal_at_once_where_nothing_is_missing(office):
    office.change(release="automatic", releasers=[])

    proposed = office.propose()

    assert (proposed["state"], proposed["waits_for"]) == ("done", None)
    assert len(office.app.changes) == 1
    assert office.desk.proposals.find(proposed["proposal"]).released_by == "policy"


def test_every_step_leaves_a_line_without_key_secret_or_names(office):
    proposed = office.propose()
    office.release(proposed)
    office.release(proposed)

    steps = [each["operation"] for each in office.readers.log if each.get("proposal")]
    text = json.dumps(office.readers.log)

    assert steps == [
        "propose_action",
        "action_checked",
        "action_done",
        "release_refused",
    ]
    for secret in (SECRET, proposed["proposal"], proposed["handle"]):
        assert secret not in text
    assert f'{proposed["values"]["customer_id"]}"' not in text
    assert SECRET not in json.dumps(proposed)
    kept = office.desk.proposals.path
    assert SECRET.encode() not in kept.read_bytes()
    assert kept.stat().st_mode & 0o077 == 0


PYPROJECT = """\
[tool.scan_pipeline]
lake = "lake"
keys = "keys"
trust = "scan_pipeline_trust.json"
dagster_home = "dagster_home"
"""
PROGRAM = "from scan_pipeline.cli.main import main; main()"


@pytest.fixture
def project(bench, tmp_path) -> Iterator[tuple[Office, list[str]]]:
    """A project on disk whose releases are processes of their own, and how one is started."""
    walked = bench.walk(clock=utc_now)
    rows = population("customers", 1_000)
    app = RecordsApp(records={f"customer-{row.number}": row.raw for row in rows})
    root = walked.workspace.project.keys.parent
    (root / "pyproject.toml").write_text(PYPROJECT)
    path = tmp_path / "policy.yaml"
    with running_app(app) as url:
        ana = {**POLICY["principals"]["ana"], "token_sha256": []}
        eve = {**POLICY["principals"]["eve"], "local_users": [launching_user()]}
        bob = POLICY["principals"]["bob"]
        policy = {**POLICY, "principals": {"ana": ana, "bob": bob, "eve": eve}}
        path.write_text(yaml.safe_dump({**policy, "actions": {"close": action(url)}}))
        desk = create_desk(
            walked.workspace, find=lambda _: walked.scan, policy=lambda: load_policy(path)
        )
        office = Office(Readers(desk=desk, walked=walked, path=path), app, url)
        start = [sys.executable, "-c", PROGRAM, "--project", str(root), "actions"]
        yield office, start


def proposed_directly(office: Office) -> dict[str, Any]:
    """Propose as ana without a connection: what is shown here is the release."""
    from scan_pipeline.agents.inputs import StoppingInput, rows_query
    from scan_pipeline.agents.open_query import open_query
    from scan_pipeline.agents.proposing import propose_action
    from scan_pipeline.agents.read_record import read_record

    query = rows_query(
        where=[], columns=[], order=[], stopping=StoppingInput(), at_least="verified", accept=None
    )
    desk = office.desk
    opened = open_query(desk.reading, "ana", scan="customers", view="screening", query=query)
    read_record(desk.reading, "ana", handle=opened.result_handle, row=1)
    kept = propose_action(desk, "ana", handle=opened.result_handle, row=1, action="close")
    return {"proposal": kept.name, "key": kept.key}


def run(start: list[str], *arguments: str, policy: str, **more: Any):
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SCAN_PIPELINE_")}
    return subprocess.Popen(
        [*start, *arguments, "--policy", policy, "--json"],
        env={**environ, "REGISTRY_TOKEN": AUDITOR_TOKEN, "WRITE_TOKEN": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_process_that_is_killed_after_sending_leaves_unknown_and_nothing_is_sent_twice(project):
    office, start = project
    name, policy = proposed_directly(office)["proposal"], str(office.readers.path)
    running = list[subprocess.Popen[str]]()

    def kill(request):
        if request.method != "GET" and len(office.app.changes) == 1:
            os.kill(running[0].pid, signal.SIGKILL)

    office.app.before = kill
    running.append(run(start, "release", name, policy=policy))
    running[0].communicate()
    assert running[0].returncode == -signal.SIGKILL

    again = run(start, "release", name, policy=policy)
    told, words = again.communicate()

    assert again.returncode == 1, words
    assert json.loads(told)["refused"][0]["code"] == "not_open"
    assert json.loads(told)["proposals"][0]["state"] == "unknown"
    assert len(office.app.changes) == 1


def test_person_lists_releases_and_is_told_by_the_exit_code(project):
    office, start = project
    kept, policy = proposed_directly(office), str(office.readers.path)

    listing = run(start, "list", policy=policy)
    waiting = json.loads(listing.communicate()[0])["proposals"]
    releasing = run(start, "release", kept["proposal"], policy=policy)
    told, words = releasing.communicate()
    withdrawing = run(start, "withdraw", kept["proposal"], policy=policy)
    withdrawing.communicate()

    assert [(each["key"], each["state"]) for each in waiting] == [(kept["key"], "proposed")]
    assert (listing.returncode, releasing.returncode, withdrawing.returncode) == (0, 0, 1), words
    assert json.loads(told)["proposals"][0]["state"] == "done"
    assert SECRET not in told + words
