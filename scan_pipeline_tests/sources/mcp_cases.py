"""Published failures of MCP servers and clients, as scripts and scan files."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scan_pipeline_tests.sources.mcp_servers import structured, textual

CASES: Final = [
    case
    for name in ("field_cases.jsonl", "peer_cases.jsonl")
    for line in (Path(__file__).parents[1] / "cases" / name).read_text("utf-8").splitlines()
    for case in [json.loads(line)]
    if (case.get("scenario") or case)["style"] == "mcp"
]


@dataclass(frozen=True)
class Played:
    """A case ready to be walked: what the server answers, and what the scan file says."""

    name: str
    key: str
    ids: tuple[str, ...]
    closed: bool
    source: Mapping[str, Any]
    answers: tuple[dict[str, Any], ...]


def played() -> Iterator[Played]:
    for case in CASES:
        if case["id"].startswith("C"):
            yield from _field_case(case)
        else:
            yield _peer_case(case)


def _field_case(case: dict[str, Any]) -> Iterator[Played]:
    """A case of a public report; where it gathers workspaces, each is a collection of its own."""
    scenario, expected = case["scenario"], case["expected"]
    config, responses = scenario["config"], scenario["responses"]
    at = _inside(config["items"])
    asked = [each["request"] for each in responses]
    source: dict[str, Any] = {"tool": "asked", "records_at": at or "$"}
    if config.get("next_param"):
        source["next"] = {
            "at": _inside(config["next"]),
            "send_as": config["next_param"],
            "ends_when": [{"is": "absent"}],
        }
    if "more" in config:
        ends = [{"is": "null"}, {"at": _inside(config["more"]), "is": "false"}]
        source["next"] = {"at": _inside(config["next"]), "send_as": "cursor", "ends_when": ends}
        source["count"] = _count(_inside(config["remaining"]), means="remaining")
    if "offset_param" in config:
        source["next"] = {
            "by": "offset",
            "send_as": config["offset_param"],
            "ends_when": [{"is": "empty_page"}],
        }
    size = {"limit": "limit", "maxResults": "maxResults"}
    for name in size.keys() & asked[0].keys():
        source["page_size"] = {"send_as": name, "value": asked[0][name]}
    if "limit_echo" in config:
        source["page_size"]["echoed_at"] = _inside(config["limit_echo"])
    if "next" not in source:
        source["pages"] = "none"
        if "total" in config:
            source["count"] = _count(_inside(config["total"]), means="total")
            source["whole_when"] = [{"at": _inside(config["total"]), "is": "total_reached"}]
        if "truncated" in config:
            source["whole_when"] = [{"at": _inside(config["truncated"]), "is": "false"}]
    if asked[0].get("method"):
        source = {"method": asked[0]["method"]}
    answers = tuple(
        {"when": _when(request, asked), "result": _result(each["body"]["result"], source)}
        for request, each in zip(asked, responses, strict=True)
    )
    if at == "":
        source["content"] = "text"
    parts = config.get("partitions")
    for part in parts or [None]:
        within = {"workspace": part} if part else _frozen(asked[0], source)
        mine = [each for each in answers if part in (None, each["when"].get("workspace"))]
        ids = [each for each in expected["ids"] if part is None or each.startswith(part.lower())]
        yield Played(
            name=f"{case['id']}/{part}" if part else case["id"],
            key=config["id"],
            ids=tuple(ids),
            closed=expected["gate"] == "closed"
            if part is None
            else expected["partitions"][part] == "incomplete",
            source={**source, "arguments": within} if "tool" in source else source,
            answers=tuple(mine),
        )


def _peer_case(case: dict[str, Any]) -> Played:
    """A case of another library's tests."""
    config, expected = case["config"], case["expected"]
    source: dict[str, Any] = {"tool": "asked", "records_at": config["records"]}
    if config["method"] != "tools/call":
        source = {"method": config["method"]}
    elif "has_more" in config:
        ends = [{"at": config["has_more"], "is": "false"}]
        source["next"] = {"at": "pageInfo.endCursor", "send_as": "cursor", "ends_when": ends}
        source["count"] = _count(config["remaining"], means="remaining")
    else:
        source["pages"] = "none"
        source["page_size"] = {"send_as": "limit", "value": config["page_size"]}
        source["count"] = _count(config["total"], means="total")
        source["whole_when"] = [{"at": config["total"], "is": "total_reached"}]
    return Played(
        name=case["id"],
        key=config["id"],
        ids=tuple(expected.get("ids") or expected["ids_before"]),
        closed=expected["outcome"] != "complete",
        source=source,
        answers=tuple(
            {"when": page["when"], "result": _result(page["body"], source)}
            for page in case["pages"]
        ),
    )


def _inside(path: str) -> str:
    return path.removeprefix("result").removeprefix(".")


def _count(at: str, *, means: str) -> dict[str, str]:
    return {"at": at, "means": means, "exactness": "exact", "basis": "provider_documented"}


def _when(request: Mapping[str, Any], asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what tells a request from the others: what it sends, and what only others do."""
    absent = {name: None for each in asked for name in each}
    return {name: value for name, value in {**absent, **request}.items() if name != "method"}


def _frozen(request: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    size = source.get("page_size", {}).get("send_as")
    return {name: value for name, value in request.items() if name not in ("method", size)}


def _result(told: Any, source: Mapping[str, Any]) -> dict[str, Any]:
    """Put what a source told into a result of its kind; a tool's name and schema are added."""
    if "method" in source:
        tools = [
            {"name": each.get("id"), "inputSchema": {"type": "object"}, **each}
            for each in told["tools"]
        ]
        return {**told, "tools": tools}
    return textual(json.dumps(told)) if isinstance(told, list) else structured(told)
