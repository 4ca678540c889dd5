"""`acknowledge`: the word of a person on a swing, and on nothing else."""

from typing import Any

import httpx2

from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.server import running
from scan_pipeline_tests.cli.conftest import CommandLine, registry


def test_swing_is_explained_acknowledged_and_read(scan_pipeline: CommandLine) -> None:
    """Exit 1 while it is withheld, 0 with the word; one on another night is 2, a second one 1."""

    def at_most_a_tenth(facts: dict[str, Any]) -> None:
        facts["contract"]["expect"]["swing"] = {"records": 0.1}

    with registry(size=100) as url:
        file = scan_pipeline.scan_file(url, change=at_most_a_tenth)
        assert scan_pipeline("run", file).exit_code == 0
    with running(Registry(size=150, cases=0), port=httpx2.URL(url).port or 0):
        swung = scan_pipeline("run", file)
    first, second = sorted(each["generation"] for each in scan_pipeline.json("generations", file))
    told = scan_pipeline("explain", file, second)
    because = ("--because", "the merger brought them", "--by", "ann")
    other = scan_pipeline("acknowledge", file, first, *because)
    answer = scan_pipeline.json("acknowledge", file, second, *because)
    again = scan_pipeline("acknowledge", file, second, *because)
    rows = scan_pipeline("read", file, "--format", "json", "--limit", "1000")

    assert swung.exit_code == 1
    assert "acknowledge" in told.output
    assert (other.exit_code, again.exit_code) == (2, 1)
    assert "nothing else can be acknowledged" in other.stderr
    assert answer["receipt"]["accepted"] is True
    assert answer["receipt"]["acknowledgement"]["by"] == "ann"
    assert "ann acknowledged the change from 100 records" in answer["receipt"]["statement"]
    assert "150 of 150" in rows.stderr
