"""The search engine providers under the kit: the simulated engine, its documents as they come."""

from collections.abc import Mapping
from typing import Any

import pytest

from scan_pipeline.simulator.elasticsearch import SearchEngine
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.testing import BEHAVIOURS, AppBench, Conformance
from scan_pipeline_tests.sources.search_engines import CUSTOMERS, ENVIRON, answering

NAMED = {str(each): each for each in BEHAVIOURS}
KEYS = [f"customer-{number}" for number in range(1, 12)]

ENGINES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "elasticsearch": ({}, {}),
    "opensearch": (
        {"sort": ["customer_id"], "tie_breaker": ["customer_id"]},
        {"engine": "opensearch"},
    ),
}


def kit(provider: str) -> Conformance:
    facts, engine = ENGINES[provider]
    own = {name: value for name, value in CUSTOMERS["source"].items() if name != "protocol"}
    source = {**own, "size": 4, "provider": provider, **facts}
    scan = parse_scan({**CUSTOMERS, "source": source})
    bench = AppBench(
        scan,
        lambda: answering(SearchEngine(size=len(KEYS), **engine)),
        keys=KEYS,
        environ=ENVIRON,
        is_page=lambda request: request.url.path.endswith("/_search"),
    )
    bench.ordered = False  # documents come in the order of their shards
    return Conformance(bench)


@pytest.mark.parametrize("provider", ENGINES)
def test_search_engine_behaves(provider: str) -> None:
    kept = kit(provider)
    for name in ("order-undisturbed", "loop-equal_page", "end-body_cut", "retry-throttled"):
        result = kept.run(NAMED[name])
        assert result.verdict == "passed", result


@pytest.mark.long
@pytest.mark.parametrize("provider", ENGINES)
def test_search_engine_behaves_in_all(provider: str) -> None:
    report = kit(provider).report()

    report.check()
    assert report.passed
