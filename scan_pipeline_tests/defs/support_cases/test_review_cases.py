"""The review of the support cases: stored with completeness and claim, on models of the library."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from scan_pipeline.core.errors import ConfigurationError, GateClosedError
from scan_pipeline.defs.support_cases.review_cases import (
    LOCATION,
    MODEL,
    QUALITY_LOCATION,
    SEEN,
    review_cases,
    run_review,
    store_review,
)


def reading(pages: int | None) -> FunctionModel:
    """Return a model that reads so many pages, all for None, and takes login loops for a defect."""
    found, read, cursors = list[int](), list[dict[str, Any]](), list[str]()

    def act(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        content: Any = messages[-1].parts[-1].content
        if isinstance(content, str):
            cursors.append(content.split("first cursor ")[1].split(",")[0])
        elif "page" in content:
            read.append(content)
            verdicts = {
                str(item["row"]): "match" if "SSO" in str(item["values"]) else "no_match"
                for item in content["page"]["items"]
            }
            assert all(set(item["values"]) == {*SEEN} for item in content["page"]["items"])
            found.extend(int(row) for row, said in verdicts.items() if said == "match")
            cursors.append(content["page"]["next_cursor"])
            handle = content["result_handle"]
            return called("judge", handle=handle, verdicts=verdicts)
        if cursors[-1] and (pages is None or len(read) < pages):
            return called("read_page", cursor=cursors[-1])
        theme = {"name": "login loops", "rows": found, "confidence": 0.8}
        return called(info.output_tools[0].name, themes=[theme], summary="I read all of them.")

    return FunctionModel(act, model_name="acting")


def called(tool: str, **arguments: Any) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, arguments)])


def test_review_to_the_end_is_stored_as_complete(support_cases: Callable[..., Any]) -> None:
    place = support_cases(150)
    opened = place.opened(place.walk())
    found = review_cases(opened, place.workspace, model=reading(None))
    store_review(found, workspace=place.workspace)
    root = place.workspace.project.lake
    (theme,) = pl.read_delta(f"{root}/{LOCATION}").to_dicts()
    (quality,) = pl.read_delta(f"{root}/{QUALITY_LOCATION}").to_dicts()

    assert found.completeness == theme["completeness"] == quality["completeness"] == "complete"
    assert theme["statement"].startswith("A reader judged all 150 support cases and marked ")
    assert theme["receipt_id"] == opened.receipt_id
    assert theme["claim_id"] == found.claim.claim_id == quality["claim_id"]
    assert theme["model"] == "acting"
    assert len(theme["case_ids"]) == theme["cases"] > 5
    assert (quality["left_out"], quality["prose"], quality["summary"]) == (0, "withheld", None)
    assert quality["unsupported"] == ["uncited: I read all of them."]


def test_review_of_page_one_is_stored_as_partial(support_cases: Callable[..., Any]) -> None:
    """The model says that it read all; it is written down that it did not."""
    place = support_cases(150)
    found = review_cases(place.opened(place.walk()), place.workspace, model=reading(1))
    store_review(found, workspace=place.workspace)
    (theme,) = pl.read_delta(f"{place.workspace.project.lake}/{LOCATION}").to_dicts()

    assert theme["completeness"] == "partial"
    assert "A reader judged 50 of the 150 support cases" in theme["statement"]
    assert "100 were not judged, and any may match" in theme["statement"]


def test_review_is_of_the_generation_that_was_opened_and_of_no_newer_one(
    support_cases: Callable[..., Any],
) -> None:
    place = support_cases(60)
    first, _ = place.walk(), place.walk()
    opened = place.opened(first)
    found = review_cases(opened, place.workspace, model=reading(None))

    assert found.review.conclusion.ground.scan_generation == first
    assert found.claim.receipt_id == opened.receipt_id


def test_without_a_configured_model_it_says_so(support_cases: Callable[..., Any]) -> None:
    place = support_cases(10)

    with pytest.raises(ConfigurationError, match=f"no model is configured; expected {MODEL}"):
        run_review(place.opened(place.walk()), place.workspace)


def test_failed_generation_is_not_reviewed_by_a_direct_call(
    support_cases: Callable[..., Any],
) -> None:
    place = support_cases(300, broken=True, environ={MODEL: "test"})
    night = place.walk()

    with pytest.raises(GateClosedError, match="coverage is failed"):
        run_review(place.opened(night), place.workspace)
