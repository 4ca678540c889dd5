"""A next link that leaves out a parameter of ours is followed, and what that rests on is told."""

from pathlib import Path

import httpx2
import pytest

from scan_pipeline_tests.sources.over_http import answered, walk

URL = "https://api.test/v1/things"


@pytest.mark.parametrize("basis", [None, "provider_documented"])
@pytest.mark.parametrize(
    ("link", "believed"),
    [("?after=2", True), ("?after=2&region=eu", True), ("?after=2&region=eu&kind=a", False)],
)
def test_parameter_that_a_link_leaves_out_has_to_be_believed(
    tmp_path: Path, link: str, believed: bool, basis: str | None
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if "after" in request.url.params:
            return answered({"items": [{"id": "2"}], "next": None})
        return answered({"items": [{"id": "1"}], "next": link})

    following = {"at": "next", "ends_when": [{"is": "null"}]}
    source = {
        "protocol": "next_link",
        "url": f"{URL}?kind=a",
        "params": {"region": "eu"},
        "records_at": "items",
        "next": following if basis is None else {**following, "keeps_query": basis},
    }

    walked = walk(source, answer, tmp_path)

    assert walked.keys == ["1", "2"]
    told = {each.name: each.basis for each in walked.receipt.assumptions}
    assert told.get("next_link_keeps_filter") == ((basis or "assumed") if believed else None)
