"""Towards the source: keys that mean to lead elsewhere, tags in the record, what answers mean."""

from typing import Any

import pytest

from scan_pipeline.agents.actions import Action, ActionRequest, IfMatch, ReRead
from scan_pipeline.agents.admitted import Admitted
from scan_pipeline.agents.execution import Executor, StaleError, outcome_of
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.simulator.server import running_app
from scan_pipeline_tests.agents.records_app import RecordsApp

KEY = "../b?#%2F c"


def executor(bench, action: Action, value: dict[str, Any]) -> Executor:
    admitted = Admitted(value=value, form=canonical_json(value))
    return Executor(action, key={"id": value["id"]}, admitted=admitted, workspace=bench.workspace())


def closing(url: str, **check: Any) -> Action:
    request = ActionRequest(url=f"{url}/v1/things/{{id}}/close", fields={"n": ("n",)})
    return Action(scan="things", proposers=("ana",), releasers=("eve",), request=request, **check)


def test_record_s_own_tag_is_the_condition_and_an_odd_key_stays_one_segment(bench):
    app = RecordsApp(records={KEY: b'{"id":1}'})
    value = {"id": KEY, "n": 12345678901234567890, "etag": app.tag(KEY).strip('"')}
    with running_app(app) as url:
        action = closing(url, if_match=IfMatch(field=("etag",), form="bare"))
        one = executor(bench, action, value)
        call = one.call(one.condition(), idempotency_key="k")
        outcome = one.send(call, secret=one.secret(call.url))
        app.edit(KEY, n=2)
        late = one.send(call, secret={})

    assert (outcome.state, late.state) == ("done", "stale")
    assert app.changes[0].path == "/v1/things/..%2Fb%3F%23%252F%20c/close"
    assert app.changes[0].body == b'{"n":12345678901234567890}'
    assert app.closed == [KEY]


@pytest.mark.parametrize("tag", ['W/"1"', "1", '"a"b"', None, True])
def test_tag_that_never_matches_is_not_sent(bench, tag):
    action = closing("http://127.0.0.1:9", if_match=IfMatch(field=("etag",)))

    with pytest.raises(ReaderError) as refused:
        executor(bench, action, {"id": "a", "etag": tag}).condition()
    assert refused.value.code == "action_unfit"


def test_number_of_another_value_is_another_version(bench):
    """A float would round both to the same."""
    app = RecordsApp(records={"a": b'{"id":"a","n":12345678901234567.88}'})
    with running_app(app) as url:
        action = closing(url, re_read=ReRead(url=f"{url}/v1/things/{{id}}"))
        value = {"id": "a", "n": 12345678901234567}
        with pytest.raises(StaleError):
            executor(bench, action, value).condition()


@pytest.mark.parametrize(
    ("body", "code"), [(b"<html>", "version_unknown"), (b'{"other": 1}', "version_unknown")]
)
def test_answer_that_holds_no_record_says_nothing_of_its_version(bench, body, code):
    with running_app(RecordsApp(records={"a": body})) as url:
        again = ReRead(url=f"{url}/v1/things/{{id}}", record_at=("data",))
        with pytest.raises(ReaderError) as refused:
            executor(bench, closing(url, re_read=again), {"id": "a", "n": 1}).condition()
    assert refused.value.code == code


def test_request_that_never_left_leaves_the_proposal_open(bench):
    action = closing("http://127.0.0.1:9", if_match=IfMatch(field=("etag",)))
    one = executor(bench, action, {"id": "a", "n": 1, "etag": '"1"'})

    outcome = one.send(one.call(one.condition(), idempotency_key="k"), secret={})

    assert outcome.state == "proposed"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, "done"),
        (204, "done"),
        (206, "unknown"),
        (302, "unknown"),
        (308, "failed"),
        (401, "failed"),
        (404, "failed"),
        (408, "unknown"),
        (412, "stale"),
        (428, "failed"),
        (429, "failed"),
        (500, "unknown"),
        (503, "unknown"),
    ],
)
def test_only_an_answer_that_says_so_means_that_nothing_was_done(status, state):
    assert outcome_of(status, success=(200, 201, 202, 204)).state == state
