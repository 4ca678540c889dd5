"""The cases of `peer_cases.jsonl` as scan files: one builder a style."""

from collections.abc import Callable, Mapping
from typing import Any

from scan_pipeline_tests.cases import points_in_time
from scan_pipeline_tests.cases.replay import Case, Expected, Replay, scan_file
from scan_pipeline_tests.cases.scripts import BySelector, ClusterBySelector, as_lists

Builder = Callable[[Case], list[Replay]]

URL = "https://api.test/v1/items"


def replays(case: Case) -> list[Replay]:
    """Return the scans of a case; none where its walk is not over HTTP."""
    return PEER_STYLES[case["style"]](case)


def _cursor(case: Case) -> list[Replay]:
    config = case["config"]
    following = {
        "at": config["next"]["path"],
        "send_as": config["send"]["query"],
        "ends_when": _signals(config),
    }
    if "initial_cursor" in config:
        following["first"] = config["initial_cursor"]
    return [_replay(case, {"protocol": "page_token", "next": following})]


def _link(case: Case) -> list[Replay]:
    config = case["config"]
    if config["next"]["source"] == "header_link":
        following: dict[str, Any] = {"relation": config["next"]["rel"]}
    else:
        path = config["next"]["path"]
        following = {"at": path if isinstance(path, list) else [path]}
    source = {
        "protocol": "next_link",
        "url": config["base"],
        "params": config.get("initial_query", {}),
        "next": {**following, "ends_when": _signals(config)},
    }
    return [_replay(case, source)]


def _offset(case: Case) -> list[Replay]:
    config = case["config"]
    offset = config["offset"]
    following = {
        "send_as": offset["param"],
        "counts": "rows",
        "first": 0,
        "ends_when": [{"is": word} for word in config["terminal"]],
    }
    size = {"send_as": offset.get("limit_param", "limit"), "value": offset["limit"]}
    return [_replay(case, {"protocol": "offset", "next": following, "page_size": size})]


def _page_number(case: Case) -> list[Replay]:
    config = case["config"]
    page = config["page"]
    ends = [
        {"at": config["total_pages"], "is": "total_pages"}
        if word == "total_pages_reached"
        else {"is": word}
        for word in config["terminal"]
    ]
    following = {
        "send_as": page["param"],
        "counts": "pages",
        "first": page["start"],
        "ends_when": ends,
    }
    source: dict[str, Any] = {"protocol": "offset", "next": following}
    if "size" in page:
        source["page_size"] = {"send_as": "size", "value": page["size"]}
    return [_replay(case, source)]


def _keyset(case: Case) -> list[Replay]:
    config = case["config"]
    if "table" in config:
        return []
    keyset = config["keyset"]
    following = {
        "after": [{"field": keyset["field"], "send_as": keyset["send"]}],
        "ends_when": [{"at": config["has_more"], "is": "false"}],
    }
    return [_replay(case, {"protocol": "last_key", "next": following})]


def _slack(case: Case) -> list[Replay]:
    return [_replay(case, {"provider": "slack"})]


def _k8s(case: Case) -> list[Replay]:
    """Return a walk under the list's own version, whose end is the documented denominator."""
    config, expected = case["config"], case["expected"]
    complete = expected["outcome"] == "complete"
    kind = "complete_in_snapshot" if complete else expected["kind"]
    names = ("generations", "snapshot")
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
                },
                key=[config["id"]],
                consistency="snapshot",
                denominator="end_signal",
                accept={},
                operation={"restarts": 1 if "on_expired" in config else 0},
            ),
            script=ClusterBySelector(as_lists(case["pages"], kind="PodList", api_version="v1")),
            expected=Expected(
                kind={"snapshot_drift": "version_changed"}.get(kind, kind),
                ids=tuple(expected["ids"] if complete else expected["ids_before"]),
                facts={name: expected[name] for name in names if name in expected},
            ),
            cancel_after=config.get("cancel_after_page"),
        )
    ]


PEER_STYLES: Mapping[str, Builder] = {
    "cursor": _cursor,
    "header_link": _link,
    "json_link": _link,
    "k8s": _k8s,
    "keyset": _keyset,
    "offset": _offset,
    "page_number": _page_number,
    "pit": points_in_time.peer_replays,
    "slack": _slack,
}
"""By style, what makes the scans of a case; a protocol of its own adds its builder here."""


def _signals(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the declared ends; a flag beside them must agree with them."""
    flag = [{"at": config["has_more"], "is": "false"}] if "has_more" in config else []
    return flag + [{"is": word} for word in config["terminal"] if word != "has_more_false"]


def _replay(case: Case, source: Mapping[str, Any]) -> Replay:
    config, expected = case["config"], case["expected"]
    source = {"url": URL, "records_at": config["records"], **source}
    if "total" in config:
        source["count"] = {"at": config["total"], "exactness": "exact"}
    if "auth" in config:
        source["auth"] = {"bearer": {"env": "TOKEN"}}
    limits = {
        ours: config[theirs]
        for ours, theirs in (("pages", "max_pages"), ("records", "max_records"))
        if theirs in config
    }
    restarts = 1 if config.get("on_expired") == "restart_new_generation" else 0
    complete = expected["outcome"] == "complete"
    ids = expected["ids"] if complete else expected["ids_before"]
    if "client_filter" in config:
        ids = list(range(1, expected["received"] + 1))  # a scan keeps what it received
    names = ("empty_pages", "generations", "min_wait_s", "requests", "consistency", "totals")
    return Replay(
        name=case["id"],
        attributes=scan_file(
            case["id"],
            source,
            limits=limits,
            operation={
                "restarts": restarts,
                "retries": {"attempts": 1 + config.get("retries", 2)},
            },
        ),
        script=BySelector(case["pages"]),
        expected=Expected(
            kind="complete" if complete else expected["kind"],
            ids=tuple(map(str, ids)),
            facts={name: expected[name] for name in names if name in expected},
        ),
        environ={"TOKEN": config.get("auth", "").removeprefix("Bearer ")},
    )
