"""The cases of `field_cases.jsonl` as scan files: one builder a style."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scan_pipeline_tests.cases import points_in_time
from scan_pipeline_tests.cases.replay import Case, Expected, Replay, scan_file
from scan_pipeline_tests.cases.scripts import ClusterInOrder, InOrder, Refreshable, as_lists

Builder = Callable[[Case], list[Replay]]

_ANY_END = [{"is": "null"}, {"is": "empty_string"}, {"is": "absent"}]
"""The shapes in which a cursor's end comes in these cases; a real scan declares one or two."""


def replays(case: Case) -> list[Replay]:
    """Return the scans of a case."""
    return FIELD_STYLES[case["scenario"]["style"]](case)


def _cursor(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    following: dict[str, Any] = {"ends_when": list(_ANY_END)}
    if "next_header" in config:
        values = [{"is": "equals", "value": value} for value in config["end_values"]]
        following |= {"header": config["next_header"], "ends_when": values}
    elif "next" in config:
        following["at"] = config["next"]
    if "last" in config:
        following["ends_when"] = [
            {"is": "absent"},
            {"at": config["last"], "is": "equals", "value": True},
        ]
    following["send_as"] = config.get("next_param", "cursor")
    source = {"protocol": "page_token", "next": following, **_http(config)}
    if "fields_param" in config:
        source |= {
            "projection": config["fields_param"],
            "params": {config["fields_param"]: config["fields"]},
        }
    if config.get("single_page"):
        source |= {"protocol": "next_link", "next": _LINK_HEADER}
    if "partitions" in config:
        return _partitions(case, source)
    if "scope" in config:
        source["params"] = {"corpora": config["scope"]["sent"]}
    return [_replay(case, source, continuation=[following["send_as"]])]


_LINK_HEADER = {"relation": "next", "ends_when": [{"is": "no_next_link"}]}


def _next_link(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    if config["next_kind"] == "link_header":
        following: dict[str, Any] = _LINK_HEADER
    else:
        following = {"at": [config["next"]], "ends_when": [{"is": "absent"}, {"is": "null"}]}
    url = f"{config['base']}/things"
    source = {"protocol": "next_link", "next": following, **_http(config), "url": url}
    return [_replay(case, source)]


def _graph(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    first = case["scenario"]["responses"][0]["request"]
    source: dict[str, Any] = {
        "provider": "graph",
        "url": f"{config.get('base', 'https://graph.test')}/v1.0/things",
        "params": first,
    }
    if "nested" in config:
        source["nested"] = [{"at": config["nested"]["path"], "cap": config["nested"]["cap"]}]
    return [_replay(case, source, continuation=["$skiptoken"])]


def _offset(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    following = {
        "send_as": config["offset_param"],
        "counts": "rows",
        "first": 0,
        "ends_when": [{"is": config.get("end", "empty_page")}],
    }
    return [_replay(case, {"protocol": "offset", "next": following, **_http(config)})]


def _page(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    by_total = "total" in config and "end" not in config
    following = {
        "send_as": config.get("page_param", "page"),
        "counts": "pages",
        "first": 1,
        "ends_when": [{"is": "total_reached" if by_total else "empty_page"}],
    }
    first = case["scenario"]["responses"][0]["request"]
    params = {name: value for name, value in first.items() if name in ("q", "where")}
    source = {"protocol": "offset", "next": following, "params": params, **_http(config)}
    if "limit" in first:
        source["page_size"] = {"send_as": "limit", "value": config["page_size"]}
    return [_replay(case, source)]


def _keyset(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    end = {"at": config["more"], "is": "false"} if "more" in config else {"is": config["end"]}
    following = {
        "after": [{"field": config["key"][0], "send_as": config["next_param"]}],
        "ends_when": [end],
    }
    source = {"protocol": "last_key", "next": following, **_http(config)}
    source["params"] = config.get("filters", {})
    return [_replay(case, source, continuation=[config["next_param"]])]


def _slack(case: Case) -> list[Replay]:
    config = case["scenario"]["config"]
    source = {
        "provider": "slack",
        "url": "https://slack.test/api/things.list",
        "records_at": config["items"],
    }
    return [_replay(case, source, continuation=["cursor"])]


def _aws(case: Case) -> list[Replay]:
    """Tell a case as an operation of AWS whose answers have its shape."""
    scenario = case["scenario"]
    if "partitions" in scenario["config"]:
        return _aws_accounts(case)
    source = {**_AWS, "service": "ssm", "operation": "describe_parameters"}
    steps = [_aws_step(each, "Parameters", "Name") for each in scenario["responses"]]
    retold = {**case, "scenario": {**scenario, "responses": steps}}
    (replay,) = [_replay(retold, source, continuation=["NextToken"])]
    return [_keyed(replay, "Name")]


def _aws_accounts(case: Case) -> list[Replay]:
    """Return one scan an account; each answer names the account it is of."""
    found: list[Replay] = []
    for step in case["scenario"]["responses"]:
        account = step["request"]["account"]
        whole = case["expected"]["partitions"][account] == "complete"
        retold = _aws_step(step, "Tags", "Key")
        retold["request"] = {"ResourceARN": _gateway(account)}
        retold["body"]["ResourceARN"] = _gateway(retold["body"].pop("Account"))
        source = {
            **_AWS,
            "service": "storagegateway",
            "operation": "list_tags_for_resource",
            "params": retold["request"],
            "shows": retold["request"],
        }
        replay = Replay(
            name=f"{case['id']}-{account}",
            attributes=scan_file(f"{case['id']}_{account}", source),
            script=InOrder([retold], continuation=["Marker"]),
            expected=Expected(
                kind="complete" if whole else case["expected"]["error_kind"],
                ids=tuple(case["expected"]["ids"]) if whole else (),
            ),
            environ=_AWS_ENVIRON,
        )
        found.append(_keyed(replay, "Key"))
    return found


_AWS: Mapping[str, Any] = {
    "protocol": "aws",
    "region": "us-east-1",
    "identity": None,
    "auth": {
        "keys": {"access_key_id": {"env": "KEY_ID"}, "secret_access_key": {"env": "SECRET"}},
    },
}
_AWS_ENVIRON = {"KEY_ID": "AKIATEST", "SECRET": "s"}


def _gateway(account: str) -> str:
    return f"arn:aws:storagegateway:us-east-1:{account:0>12}:gateway/sgw-12A3456B"


def _aws_step(step: Mapping[str, Any], records: str, key: str) -> dict[str, Any]:
    body = dict(step["body"])
    body[records] = [{key: each["id"]} for each in body.pop("Rows")]
    return {**step, "body": body}


def _keyed(replay: Replay, key: str) -> Replay:
    """Return an AWS replay with the key its operation has, and nothing that is HTTP's own."""
    contract = {**replay.attributes["contract"], "key": [key]}
    return replace(
        replay, attributes={**replay.attributes, "contract": contract}, environ=_AWS_ENVIRON
    )


def _k8s(case: Case) -> list[Replay]:
    scenario, expected = case["scenario"], case["expected"]
    config, listed = scenario["config"], {"kind": "PodList", "api_version": "v1"}
    return [
        Replay(
            name=case["id"],
            attributes=scan_file(
                case["id"],
                {
                    "provider": "kubernetes",
                    "access": "direct",
                    "url": "https://cluster.test",
                    "resource": {"version": "v1", "plural": "pods", "kind": "Pod"},
                    "limit": config["page_size"],
                },
                key=[config["id"]],
                denominator="end_signal",
                operation={"restarts": 0},
            ),
            script=ClusterInOrder(
                as_lists(scenario["responses"], **listed), continuation=[config["next_param"]]
            ),
            expected=Expected(
                kind=expected["error_kind"] or "complete", ids=tuple(expected["ids"])
            ),
        )
    ]


FIELD_STYLES: Mapping[str, Builder] = {
    "aws": _aws,
    "cursor": _cursor,
    "es_pit": points_in_time.field_replays,
    "graph": _graph,
    "k8s": _k8s,
    "keyset": _keyset,
    "next_link": _next_link,
    "offset": _offset,
    "page": _page,
    "slack": _slack,
}
"""By style, what makes the scans of a case; a protocol of its own adds its builder here."""


def _http(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every style declares: address, records, count, page size."""
    source: dict[str, Any] = {"url": "https://source.test/things"}
    if "items" in config:
        source["records_at"] = config["items"]
    if "format" in config:
        source["records_format"] = {"ndjson": "json_lines"}.get(config["format"], config["format"])
        source["records_at"] = "$"
    if "total" in config:
        source["count"] = {"at": config["total"], "exactness": "exact"}
    if "total_header" in config:
        source["count"] = {"header": config["total_header"], "exactness": "exact"}
    if "limit_param" in config:
        source["page_size"] = {"send_as": config["limit_param"], "value": config["page_size"]}
    if "result_window" in config:
        source["result_window"] = config["result_window"]
    if config.get("auth") == "refreshable":
        source["auth"] = {
            "oauth2_client_credentials": {
                "token_url": Refreshable.TOKEN_URL,
                "client_id": "us",
                "client_secret": {"env": "SECRET"},
            }
        }
        ended = {"at": "error", "equals": "expired_token"}
        source["responses"] = [{"status": 401, "body": ended, "means": "refresh"}]
    return source


def _replay(
    case: Case, source: Mapping[str, Any], *, continuation: list[str] | None = None
) -> Replay:
    scenario, expected = case["scenario"], case["expected"]
    config, steps = scenario["config"], scenario["responses"]
    source = dict(source)
    first = steps[0].get("request", {})
    if "maxResults" in first:
        source["page_size"] = {"send_as": "maxResults", "value": config["page_size"]}
    limits: dict[str, Any] = {}
    if "max_pages" in config:
        limits["pages"] = config["max_pages"]
    if "max_consecutive_empty" in config:
        limits["empty_pages"] = config["max_consecutive_empty"] - 1  # ours counts those let pass
    contract: dict[str, Any] = {"limits": limits}
    if "control" in scenario:
        contract["expect"] = {"manifest": "MANIFEST"}
    kind, ids, facts = expected["error_kind"] or "complete", expected["ids"], dict(expected)
    if "continue_key" in config:
        # A window is split by a key in no protocol here: what is left is to say that it was hit.
        steps, kind, ids = steps[:2], "window_capped", ["1", "2", "3", "4"]
        facts.pop("duplicates")
    return Replay(
        name=case["id"],
        attributes=scan_file(
            case["id"],
            source,
            operation={"retries": {"attempts": config.get("max_attempts", 3)}, "restarts": 0},
            **contract,
        ),
        script=(Refreshable if config.get("auth") == "refreshable" else InOrder)(
            steps, continuation=continuation or ()
        ),
        expected=Expected(kind=kind, ids=tuple(map(str, ids)), facts=_facts(facts)),
        environ={"SECRET": "the secret itself"},
        manifest=[json.dumps(each) for each in scenario.get("control", {}).get("ids", ())],
    )


def _facts(expected: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "pages",
        "columns",
        "requests_sent",
        "requests_to",
        "auth_refreshes",
        "distinct",
        "duplicates",
        "short_by",
        "max_requests",
        "missing",
    )
    return {name: expected[name] for name in names if name in expected}


def _partitions(case: Case, source: Mapping[str, Any]) -> list[Replay]:
    """Return one scan a partition: each has its own end and outcome."""
    found: list[Replay] = []
    for step in case["scenario"]["responses"]:
        stream = step["request"]["stream"]
        kind = case["expected"]["partitions"][stream]
        found.append(
            Replay(
                name=f"{case['id']}-{stream}",
                attributes=scan_file(
                    f"{case['id']}_{stream}", {**source, "params": {"stream": stream}}
                ),
                script=InOrder([step]),
                expected=Expected(kind=kind, ids=()),
            )
        )
    return found
