"""A swing is acknowledged in the launchpad, and the generation that supersedes it opens."""

from collections.abc import Callable
from typing import Any

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
TOTAL = [["analyses", "total"]]


def test_withheld_generation_opens_once_somebody_acknowledged_it(
    station: Callable[..., Any], bench: Any
) -> None:
    """The night fails its blocking check; after the word its next attempt is read."""
    edits = {"contract.expect.swing": {"records": 0.1}}
    opened = station(bench.registry(size=50), edits)
    opened.stages(NIGHT)
    place = bench.workspace(bench.registry(size=150), project=opened.workspace.project)
    swung = station(None, edits, workspace=place)
    ran = swung.stages(NEXT_NIGHT)
    refused = swung.run(NEXT_NIGHT, only=TOTAL)
    job = swung.definitions.resolve_job_def("customers_acknowledge")

    def said(generation: str) -> Any:
        config = {"generation": generation, "by": "ann", "because": "a merger"}
        return job.execute_in_process(
            instance=swung.instance,
            run_config={"ops": {"customers_acknowledge_swing": {"config": config}}},
            raise_on_error=False,
        )

    first = said(NIGHT)
    told = said(NEXT_NIGHT)
    fresh = told.output_for_node("customers_acknowledge_swing")

    assert not ran.verdicts["receipt_accepted"]
    assert "withheld until a person acknowledges it" in str(ran.told("customers/receipt"))
    assert "analyses__total" in refused.failures
    assert not first.success
    assert fresh == f"{NEXT_NIGHT}.2"
    assert swung.run(fresh, only=TOTAL).told("analyses/total")["rows"] == 150
