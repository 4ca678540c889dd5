"""Runs of Dagster send alerts; the sensor sends what no run has sent."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scan_pipeline.simulator.faults import PageReplaced
from scan_pipeline.simulator.script import Script
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.alerting.channels import channels


@pytest.mark.long
def test_a_run_tells_and_the_sensor_tells_what_is_left(
    bench: Bench, station: Callable[..., Any]
) -> None:
    registry = bench.registry(size=300, script=Script(faults=(PageReplaced(page=2, by=1),)))
    with channels() as heard:
        project = replace(bench.project(), alerts={"webhook": {"env": "HOOK"}})
        place = bench.workspace(registry, project=project)
        place.environ = {**place.environ, "HOOK": heard.address}
        opened = station(registry, workspace=place, persistent=True)
        heard.answers = 503

        assert "receipt_accepted" in opened.stages().verdicts
        assert heard.posted == []
        early = opened.tick("customers_alerts")
        assert early.skip_message == "not_accepted; webhook: waits"

        heard.answers = 200
        bench.clock.now += timedelta(minutes=2)
        later = opened.tick("customers_alerts")
        assert later.skip_message == "not_accepted; webhook: sent"
        again = opened.tick("customers_alerts")
        assert again.skip_message == "not_accepted; known to every channel"
        assert not again.run_requests
        assert len(heard.posted) == 1
