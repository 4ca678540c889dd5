"""Cases of searches under a point in time: their scripts, and their scan files."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from scan_pipeline_tests.cases.replay import Case, Expected, Replay, scan_file
from scan_pipeline_tests.cases.scripts import Script, Step

URL = "https://search.test"


class UnderPointInTime(Script):
    """A search engine that answers as a case says, to searches under the newest name alone.

    Attributes:
        held: name of the point in time that is open, None where there is none.

    Args:
        pages: by the sort values they begin behind (None for the first page), the answers.
        opened_as: name that opening gives.
    """

    def __init__(self, pages: Sequence[tuple[Any, Step]], *, opened_as: str) -> None:
        super().__init__()
        self.held: str | None = None
        self._pages = {json.dumps(after): step for after, step in pages}
        self._opened_as, self._given = opened_as, set[str]()

    @property
    def left(self) -> int:
        """Return how many answers were never asked for."""
        return len(self._pages.keys() - self._given)

    def step(self, request: httpx2.Request) -> Step | None:
        """Return the answer to opening, searching or closing."""
        path, asked = request.url.path, json.loads(request.read() or b"null")
        if request.method == "POST" and path.endswith(("/_pit", "/_search/point_in_time")):
            self.held = self._opened_as
            return {"status": 200, "headers": {}, "body": {"id": self.held, "pit_id": self.held}}
        if request.method == "DELETE":
            return self._closed(asked)
        after = json.dumps(asked.get("search_after"))
        if after not in self._pages or asked["pit"]["id"] != self.held:
            return None
        self._given.add(after)
        step = self._pages[after]
        self.held = step["body"].get("pit_id", self.held)
        return step

    def _closed(self, asked: Mapping[str, Any]) -> Step | None:
        named = asked.get("id") or asked["pit_id"][0]
        if named != self.held:
            return None
        self.held = None
        told = {"succeeded": True, "num_freed": 1, "pits": [{"successful": True, "pit_id": named}]}
        return {"status": 200, "headers": {}, "body": told}


def peer_replays(case: Case) -> list[Replay]:
    """Return the scan of a case of other libraries."""
    config, expected = case["config"], case["expected"]
    complete = expected["outcome"] == "complete"
    pages = [(page["when"]["search_after"], page) for page in case["pages"]]
    source = {"sort": config["sort"], "size": config["size"]}
    return [
        Replay(
            name=case["id"],
            attributes=_scan_file(case["id"], source, key=[config["id"]]),
            script=UnderPointInTime(pages, opened_as=case["pages"][0]["when"]["pit"]),
            expected=Expected(
                kind="complete_in_snapshot" if complete else expected["kind"],
                ids=tuple(expected["ids"] if complete else expected["ids_before"]),
            ),
        )
    ]


def field_replays(case: Case) -> list[Replay]:
    """Return the scans of a case from reports; where its order ties, also the refused scan file.

    Their answers leave out what both engines always send (`timed_out`), and one walks by a scroll:
    its hits are given sort values, and its scroll ids stand for names of a point in time.
    """
    scenario, expected = case["scenario"], case["expected"]
    config, pages = scenario["config"], list[tuple[Any, Step]]()
    for number, step in enumerate(scenario["responses"]):
        after = pages[-1][1]["body"]["hits"]["hits"][-1]["sort"] if pages else None
        pages.append((after, _completed(step, number=number)))
    ids = config["id"] if isinstance(config["id"], list) else [config["id"]]
    source = {"size": config["page_size"]}
    tied: dict[str, Any] = {}
    refused = list[Replay]()
    if expected.get("plan_error") == "sort_not_total":
        tied = {"engine": "opensearch", "sort": ["seq"], "tie_breaker": ["seq"]}
        hidden = {**source, "engine": "opensearch", "sort": ["_doc"], "tie_breaker": ["_doc"]}
        refused.append(
            Replay(
                name=f"{case['id']}-plan",
                attributes=_scan_file(f"{case['id']}_plan", hidden, key=ids[::-1]),
                script=None,
                expected=Expected(kind="order_not_total", ids=()),
            )
        )
    walked = Replay(
        name=case["id"],
        # Our reading of a case takes a key's first field for its id.
        attributes=_scan_file(case["id"], {**source, **tied}, key=ids[::-1]),
        script=UnderPointInTime(pages, opened_as=pages[0][1]["body"]["pit_id"]),
        expected=Expected(kind=expected["error_kind"], ids=tuple(expected["ids"])),
    )
    return [walked, *refused]


def _completed(step: Step, *, number: int) -> Step:
    body = {"timed_out": False, **step["body"]}
    if step["status"] != 200:
        return step
    body.setdefault("pit_id", body.get("_scroll_id"))
    hits = [{"sort": [10 * number + n], **hit} for n, hit in enumerate(body["hits"]["hits"])]
    return {**step, "body": {**body, "hits": {**body["hits"], "hits": hits}}}


def _scan_file(name: str, source: Mapping[str, Any], *, key: Sequence[str]) -> dict[str, Any]:
    facts = {"protocol": "elasticsearch", "url": URL, "index": "things", **source}
    accept = {"scope": "all_records_in_snapshot"}
    operation = {"restarts": 0, "retries": {"attempts": 2}}
    return scan_file(
        name, facts, key=list(key), consistency="snapshot", accept=accept, operation=operation
    )
