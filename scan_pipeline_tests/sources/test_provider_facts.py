"""Provider files: documented facts under a scan's own, part of its scope, contradicted by none."""

import json

import pytest

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import AccessRefusedError, ContractError, ProtocolError
from scan_pipeline.core.page import End, Next
from scan_pipeline.core.scan import scan_json, source_json
from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline.sources.provider_facts import provider_facts, provider_names, with_provider
from scan_pipeline_tests.sources.over_http import LIVE, NOW, Asking, answered, scan_of, walk

SLACK = {"provider": "slack", "url": "https://slack.test/api/users.list", "records_at": "members"}
GRAPHQL_NEXT = {"at": "data.x.pageInfo.endCursor", "ends_when": [{"is": "null"}]}

NEEDED = {
    "aip_158": {"records_at": "items"},
    "datasette": {},
    "docker_registry": {},
    "github_graphql": {"records_at": "data.x.nodes", "next": GRAPHQL_NEXT},
    "github_rest": {"records_at": "$"},
    "graph": {},
    "odata": {},
    "okta": {},
    "slack": {"records_at": "channels"},
    "stripe": {},
}
"""What a scan must add beside its address, by provider over HTTP."""


@pytest.mark.parametrize("name", provider_names())
def test_every_file_names_its_pages_and_the_day_they_were_read(name):
    found = provider_facts(name)

    assert found.provider == name
    for each in found.documentation:
        assert (each.read is None) == (each.extent == "not_opened"), each.page
    assert all(each.page.startswith("https://") for each in found.documentation)


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_scan_needs_little_beside_the_providers_name_and_an_address(name):
    url = {} if name == "github_graphql" else {"url": "https://api.test/things"}

    scan = scan_of({"provider": name, **url, **NEEDED[name]})

    assert scan.source.provider.name == name
    assert scan.source.provider.revision == provider_facts(name).revision


def test_facts_lie_under_those_of_the_scan():
    scan = scan_of({**SLACK, "params": {"types": "public"}, "page_size": {"value": 50}})

    assert scan.source.next.at == ("response_metadata", "next_cursor")
    assert (scan.source.page_size.send_as, scan.source.page_size.value) == ("limit", 50)
    assert scan.source.params == {"types": "public"}


@pytest.mark.parametrize(
    ("own", "at"),
    [
        ({"success": {"at": "ok", "equals": False}}, "source.success.equals"),
        ({"next": {"send_as": "token"}}, "source.next.send_as"),
        ({"page_size": {"send_as": "count"}}, "source.page_size.send_as"),
        ({"protocol": "offset"}, "source.protocol"),
        ({"errors_at": []}, "source.errors_at"),
    ],
)
def test_scan_may_not_contradict_what_is_documented(own, at):
    with pytest.raises(ScanFileError) as refused:
        scan_of({**SLACK, **own})

    told = {".".join(map(str, each.at)): each.message for each in refused.value.problems}
    assert "slack documents another value (https://docs.slack.dev/" in told[at]


def test_refusal_does_not_show_what_stood_in_the_scan():
    with pytest.raises(ScanFileError) as refused:
        scan_of({**SLACK, "next": {"send_as": "xoxb-pasted-secret"}})

    assert "xoxb" not in str(refused.value)


def test_equal_fact_is_no_contradiction():
    assert scan_of({**SLACK, "errors_at": ["error"]}) == scan_of(SLACK)


def test_unknown_provider_is_named_with_those_there_are():
    with pytest.raises(ScanFileError, match=r"expected one of \['aip_158'"):
        scan_of({**SLACK, "provider": "slak"})


@pytest.mark.parametrize("name", ["../scan", "", "slack.yaml"])
def test_name_of_a_provider_is_no_path(name):
    with pytest.raises(ContractError):
        provider_facts(name)


def test_source_without_a_provider_is_left_alone():
    source = {"protocol": "page_token", "url": "https://api.test"}

    assert with_provider(source) == (source, ())


def test_scope_digest_covers_the_providers_facts():
    with_facts = scan_of(SLACK)
    by_hand = {k: v for k, v in source_json(with_facts.source).items() if k != "provider"}
    alone = scan_of({**by_hand, "provider": None})
    older = {
        **source_json(with_facts.source),
        "provider": {"name": "slack", "revision": "sha256:0"},
    }

    assert len({scope_digest(each) for each in (with_facts, alone, scan_of(older))}) == 3


def test_stored_contract_is_read_as_it_was_whatever_the_file_says_now():
    stored = json.loads(json.dumps(scan_json(scan_of(SLACK))))
    stored["source"]["provider"]["revision"] = "sha256:of-an-older-file"
    stored["source"]["next"]["send_as"] = "older_cursor"

    read = parse_scan(stored)

    assert read.source.next.send_as == "older_cursor"
    assert scan_json(read) == stored


# what the files say, on answers as documented


def test_slack_ends_by_an_empty_a_null_or_an_absent_cursor():
    for meta in ({"response_metadata": {"next_cursor": ""}}, {"response_metadata": {}}, {}):
        here = Asking(SLACK, lambda _, meta=meta: answered({"ok": True, "members": [], **meta}))
        assert isinstance(here.fetch().continuation, End)


def test_slack_failure_has_status_200_and_is_no_page():
    here = Asking(SLACK, lambda _: answered({"ok": False, "error": "invalid_cursor"}))

    with pytest.raises(ProtocolError) as refused:
        here.fetch("k")

    assert refused.value.code == "error_envelope"


AIP = {"provider": "aip_158", "url": "https://api.test/v1/books", "records_at": "books"}


@pytest.mark.parametrize(
    ("body", "continuation"),
    [
        ({"books": [{"id": "a"}], "nextPageToken": "t"}, Next(token="t")),
        ({"nextPageToken": "t"}, Next(token="t")),
        ({"books": [], "nextPageToken": ""}, End(signal="empty_string")),
        ({}, End(signal="absent")),
    ],
)
def test_aip_158_pages_may_leave_out_what_is_empty(body, continuation):
    assert Asking(AIP, lambda _: answered(body)).fetch().continuation == continuation


def test_aip_158_repeats_every_parameter_beside_the_token():
    here = Asking({**AIP, "params": {"filter": "a=1"}}, lambda _: answered({}))

    here.fetch("t")

    assert here.sent == {"filter": "a=1", "pageSize": "1000", "pageToken": "t"}


def test_aip_158_field_mask_must_keep_the_token():
    with pytest.raises(ScanFileError, match="nextPageToken"):
        scan_of({**AIP, "params": {"fields": "books(id)"}})


GITHUB = {
    "provider": "github_rest",
    "url": "https://api.github.com/orgs/x/repos",
    "records_at": "$",
}


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "17"}, 17.0),
        (
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 30)},
            30.0,
        ),
    ],
)
def test_github_throttling_is_waited_out(status, headers, wait):
    answers = iter(
        [answered({"message": "slow"}, status=status, headers=headers), answered([{"id": 1}])]
    )
    here = Asking(GITHUB, lambda _: next(answers))

    page = here.fetch()

    assert (page.attempts, here.slept) == (2, [wait])
    assert page.continuation == End(signal="no_next_link")
    assert here.sent == {"per_page": "100"}


def test_github_refusal_of_rights_is_not_waited_out():
    headers = {"x-ratelimit-remaining": "4999"}
    here = Asking(GITHUB, lambda _: answered({"message": "no"}, status=403, headers=headers))

    with pytest.raises(AccessRefusedError):
        here.fetch()

    assert here.slept == []


def test_github_link_is_followed_to_another_path_and_page_size():
    link = (
        '<https://api.github.com/organizations/7/repos?per_page=50&page=2>; rel="next", '
        '<https://api.github.com/organizations/7/repos?per_page=50&page=9>; rel="last"'
    )
    here = Asking(GITHUB, lambda _: answered([{"id": 1}], headers={"link": link}))

    here.fetch(here.fetch().continuation.token)

    assert here.last.url.path == "/organizations/7/repos"


def test_github_graphql_throttling_comes_with_status_200():
    source = {
        "provider": "github_graphql",
        "body": {"query": "..."},
        "records_at": "data.x.nodes",
        "next": GRAPHQL_NEXT,
    }
    reset = str(int(NOW.timestamp()) + 60)
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    page = {"data": {"x": {"nodes": [], "pageInfo": {"endCursor": None}}}}
    answers = iter(
        [
            answered({"errors": [{"type": "RATE_LIMITED"}]}, headers=headers),
            answered(page, headers=headers),
        ]
    )
    here = Asking(source, lambda _: next(answers))

    assert here.fetch().continuation == End(signal="null")
    assert here.slept == [60.0]


def test_okta_link_lines_are_read_and_its_wait_honoured():
    url = "https://x.okta.test/api/v1/users"
    lines = [("link", f'<{url}?limit=200>; rel="self"'), ("link", f'<{url}?after=a>; rel="next"')]
    wait = {"x-rate-limit-reset": str(int(NOW.timestamp()) + 5)}
    answers = iter([answered({}, status=429, headers=wait), answered([{"id": 1}], headers=lines)])
    here = Asking({"provider": "okta", "url": url}, lambda _: next(answers))

    assert here.fetch().continuation == Next(token=f"{url}?after=a")
    assert here.slept == [5.0]


def test_datasette_ends_by_null_and_counts(tmp_path):
    pages = {None: (["a", "b"], "b"), "b": (["c"], None)}

    def answer(request):
        sent = dict(request.url.params)
        assert sent["_shape"] == "objects"
        ids, following = pages[sent.get("_next")]
        rows = [{"id": each} for each in ids]
        return answered({"rows": rows, "next": following, "filtered_table_rows_count": 3})

    came = walk({"provider": "datasette", "url": "http://d.test/t.json"}, answer, tmp_path)

    assert came.keys == ["a", "b", "c"]
    assert came.receipt.expectations[0].result == "met"


@pytest.mark.parametrize("provider", ["graph", "odata"])
def test_odata_link_with_a_dot_in_its_name_is_followed(provider):
    link = "https://api.test/v1.0/things?$skiptoken=z"
    here = Asking(
        {"provider": provider, "url": "https://api.test/v1.0/things"},
        lambda _: answered({"value": [], "@odata.nextLink": link}),
    )

    assert here.fetch().continuation == Next(token=link)


def test_scan_with_a_provider_can_be_walked_and_its_contract_read_back(tmp_path):
    answer = lambda _: answered({"ok": True, "members": [{"id": "u1"}]})  # noqa: E731

    came = walk(SLACK, answer, tmp_path)

    assert came.keys == ["u1"]
    assert came.receipt.scope_digest == scope_digest(
        parse_scan({"name": "things", "source": SLACK, "contract": LIVE})
    )
