"""Every fixture of the spine once more, through the registry's MCP server and `mcp_tool`.

The tests are those of `scan_pipeline_tests/stages/test_fixtures_*.py`, with another bench.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Final

import pytest

from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline_tests.conftest import Opens
from scan_pipeline_tests.sources.mcp_bench import McpBench
from scan_pipeline_tests.stages import (
    test_fixtures_answers,
    test_fixtures_population,
    test_fixtures_walk,
)

pytestmark = pytest.mark.long

FIXTURES: Final[tuple[ModuleType, ...]] = (
    test_fixtures_walk,
    test_fixtures_answers,
    test_fixtures_population,
)

OTHERWISE: Final = {
    "test_cursor_that_leads_back_or_nowhere_fails": "a tool refuses a cursor in its own words",
    "test_first_page_is_clean_and_the_whole_is_not": "runs the scan again at its address",
}
"""Tests that are told below in the words of MCP, and why."""

IN_TEXT: Final = (
    "test_answer_that_is_no_page",
    "test_damage_to_a_record",
    "test_doubled_continuation",
)
"""Beginnings of tests that need what structured content loses before anyone can look: a member that
stands twice. They read the text block of each result."""

globals().update(
    {
        name: test
        for module in FIXTURES
        for name, test in vars(module).items()
        if name.startswith("test_") and name not in OTHERWISE
    }
)


@pytest.fixture
def opens() -> type[Opens]:
    """What a generation opens; the class that the bench of this module answers with."""
    return Opens


@pytest.fixture
def bench(request, tmp_path, shipped) -> Iterator[McpBench]:
    """Runs scans against registries that speak MCP."""
    source = dict(shipped["source"])
    if request.node.name.startswith(IN_TEXT):
        source["content"] = "text"
    with ExitStack() as stack:
        yield McpBench(folder=tmp_path, stack=stack, shipped={**shipped, "source": source})


@pytest.mark.parametrize(
    ("name", "code", "pages"),
    [
        ("cursor_repeats_page_three", "cursor_repeated", 3),
        ("cursor_cycles", "cursor_repeated", 4),
        ("cursor_repeats_in_other_words", "no_progress", 5),
        ("cursor_corrupted", "tool_error", 3),
    ],
)
def test_cursor_that_leads_back_or_nowhere_fails_here_too(bench, opens, name, code, pages):
    walked = bench.walk(scenario(name))

    assert walked.verdict == test_fixtures_walk.FAILED
    assert code in walked.codes
    assert walked.receipt.pages_observed == pages
    assert walked.opens == opens()


def test_first_page_is_clean_and_the_whole_is_not_here_either(bench, opens):
    first = bench.walk(
        scenario("first_page_clean"), {"contract.limits": {"pages": 1}, "contract.expect": {}}
    )
    page = first.collection.partial(first.generation, accept="observed_pages_only")
    rows = page.labelled_frame().collect()
    whole = first.again(bench.scan())
    frame = whole.collection.latest().frame().collect()

    assert test_fixtures_walk.needing_migration(rows) == 0
    assert test_fixtures_walk.needing_migration(frame) == 4_785
    assert first.receipt.conclusion_scope == "observed_pages_only"
    assert whole.verdict == test_fixtures_walk.WHOLE
    assert whole.opens == opens(whole=8_742, partial=8_742, published=8_742)
