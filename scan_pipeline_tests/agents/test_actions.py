"""Actions as the policy declares them."""

import json
from typing import Any

import pytest
import yaml

from scan_pipeline.agents.actions import Action
from scan_pipeline.agents.policy import load_policy
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.value import adapter

URL = "https://host.test/v1/things/{id}"


def facts(**edits: Any) -> dict[str, Any]:
    kept = {
        "scan": "things",
        "proposers": ["ana"],
        "releasers": ["eve"],
        "request": {"url": f"{URL}/close"},
        "re_read": {"url": URL},
        **edits,
    }
    return {name: value for name, value in kept.items() if value is not ...}


def parsed(**edits: Any) -> Action:
    return adapter(Action).validate_json(json.dumps(facts(**edits)))


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"re_read": ...}, "exactly one of: if_match, re_read"),
        ({"if_match": {"field": "etag"}}, "exactly one of: if_match, re_read"),
        ({"releasers": []}, "names releasers"),
        ({"release": "automatic"}, "names none"),
        ({"re_read": {"url": "https://other.test/v1/things/{id}"}}, "differ in origin"),
        ({"re_read": {"url": "https://host.test/v1/things/{name}"}}, "other fields of the key"),
        ({"request": {"url": f"{URL}/close", "headers": {"X-Api-Key": "s3cret"}}}, "a secret"),
        ({"request": {"url": f"{URL}/close", "headers": {"If-Match": "*"}}}, "other than"),
        ({"request": {"url": f"{URL}/close", "idempotency_header": "a b"}}, "headers"),
        ({"request": {"url": URL, "body": {"a": 1}, "fields": {"a": "b"}}}, "under fields"),
    ],
)
def test_action_that_could_do_something_else_is_refused(edits, told):
    with pytest.raises(ScanPipelineError, match=told) as refused:
        parsed(**edits)
    assert "s3cret" not in str(refused.value)


def test_secret_in_the_place_of_its_reference_is_refused_and_not_shown():
    request = {"url": f"{URL}/close", "auth": {"bearer": "s3cret"}}

    with pytest.raises(ScanPipelineError) as refused:
        parsed(request=request)
    assert "s3cret" not in str(refused.value)


def test_digest_is_of_what_is_done_and_not_of_who_does_it():
    one = parsed()

    assert parsed(proposers=["bob"], releasers=["ana"]).digest() == one.digest()
    assert parsed(release="automatic", releasers=[]).digest() == one.digest()
    assert parsed(request={"url": f"{URL}/erase"}).digest() != one.digest()
    assert parsed(accounted_by="reader").digest() != one.digest()


@pytest.mark.parametrize(
    ("edits", "told"), [({"scan": "others"}, "others"), ({"proposers": ["nobody"]}, "nobody")]
)
def test_policy_refuses_actions_of_what_it_does_not_know(tmp_path, edits, told):
    path = tmp_path / "policy.yaml"
    policy = {
        "scans": {"things": {"views": {"whole": {}}, "shared": True}},
        "principals": {name: {"views": {"things": ["whole"]}} for name in ("ana", "eve")},
        "actions": {"close": facts(**edits)},
    }
    path.write_text(yaml.safe_dump(policy))

    with pytest.raises(ScanPipelineError, match=told):
        load_policy(path)
