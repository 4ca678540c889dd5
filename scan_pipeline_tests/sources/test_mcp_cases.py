"""Published failures of MCP servers and clients, replayed through the whole pipeline.

A scripted server answers what the case's source answered, and a scan file says of it what its
documentation would say.
"""

from dataclasses import dataclass
from typing import Final

import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.sources.mcp_cases import played
from scan_pipeline_tests.sources.mcp_servers import scripted

LIVE: Final = "records_encountered_in_live_traversal"


@dataclass(frozen=True)
class Ours:
    """What we make of a case.

    Attributes:
        stopped: traversal and its reason.
        verdict: status, scope, and whether the scan counts as done.
        codes: findings that weigh something, beside that the walk was live and uncounted.
        opened: ids that open to whoever asks for records met in a live walk; None: closed.
        asked: calls made, where the case bounds them.
    """

    stopped: tuple[str, str]
    verdict: tuple[str, str, bool]
    codes: frozenset[str] = frozenset()
    opened: tuple[str, ...] | None = None
    asked: int | None = None


FINISHED: Final = ("finished", "end_signal")
BROKEN: Final = ("failed", "protocol_broken")
WINDOW: Final = ("interrupted", "source_window")
MET: Final = ("unknown", LIVE, True)
PAGES: Final = ("unknown", "observed_pages_only", False)
FAILED: Final = ("failed", "observed_pages_only", False)

OURS: Final = {
    "C006": Ours(
        stopped=BROKEN,
        verdict=FAILED,
        codes=frozenset({"cursor_repeated", "page_repeated", "duplicate_delivery"}),
        asked=2,
    ),
    "C022": Ours(stopped=FINISHED, verdict=MET, opened=("t1", "t2", "t3", "t4")),
    "C028": Ours(
        stopped=FINISHED,
        verdict=FAILED,
        codes=frozenset({"remaining_at_end", "count_missed"}),
    ),
    "C040": Ours(stopped=WINDOW, verdict=PAGES, codes=frozenset({"source_window"}), asked=1),
    "C078/A": Ours(stopped=WINDOW, verdict=PAGES, codes=frozenset({"source_window"})),
    "C078/B": Ours(stopped=FINISHED, verdict=MET, opened=("b1",)),
    "C122": Ours(stopped=FINISHED, verdict=MET, opened=("0", "1", "2", "3", "4", "5")),
    "C125": Ours(stopped=BROKEN, verdict=FAILED, codes=frozenset({"no_progress"}), asked=2),
    "C126": Ours(stopped=WINDOW, verdict=PAGES, codes=frozenset({"source_window"}), asked=1),
    "cur-mcp-empty-string": Ours(stopped=FINISHED, verdict=MET, opened=("t1", "t2")),
    "mcp-has-next-false-remaining": Ours(
        stopped=FINISHED,
        verdict=FAILED,
        codes=frozenset({"remaining_at_end", "count_missed"}),
    ),
    "mcp-total-equals-page": Ours(
        stopped=WINDOW, verdict=PAGES, codes=frozenset({"source_window"}), asked=1
    ),
}


@pytest.mark.parametrize("case", list(played()), ids=lambda case: case.name)
def test_case_comes_out_right(tmp_path, case):
    ours = OURS[case.name]
    server = scripted(tmp_path, *case.answers)
    scan = parse_scan(
        {
            "name": "replayed",
            "source": {"protocol": "mcp_tool", "transport": server.transport, **case.source},
            "contract": {"key": [case.key], "consistency": "live", "accept": {"scope": LIVE}},
        }
    )
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    workspace = Workspace(project, environ={})

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    told = {each.code for each in receipt.findings.first if each.severity != "note"}
    assert (receipt.traversal, receipt.stop_reason) == ours.stopped
    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == ours.verdict
    assert told - {"live_traversal", "no_denominator"} == ours.codes
    assert receipt.unique_ids_observed == len(case.ids)
    assert case.closed is (ours.opened is None)
    collection, generation = Collection(scan, workspace=workspace), receipt.scan_generation
    with pytest.raises(GateClosedError):
        collection.generation(generation)
    if ours.opened is None:
        with pytest.raises(GateClosedError):
            collection.partial(generation, accept=LIVE)
    else:
        rows = collection.partial(generation, accept=LIVE).labelled_frame().collect()
        assert tuple(sorted(rows[case.key])) == ours.opened == case.ids
    assert ours.asked is None or len(server.asked) == ours.asked
    assert Audit("replayed", generation, workspace=workspace).run().agrees


def test_every_case_is_expected():
    assert {each.name for each in played()} == OURS.keys()
