"""The process itself, again and again: engines that abort at exit would show here."""

import pytest

from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline_tests.cli.conftest import CommandLine, registry

RUNS = 15


@pytest.mark.long
@pytest.mark.timeout(600)
def test_many_runs_end_with_their_right_exit_code(scan_pipeline: CommandLine) -> None:
    """Every fifth night the end comes early, and must be told from the others."""
    codes = list[tuple[int, int]]()
    with registry(size=250) as right, registry(EndEarly(page=2), size=250) as wrong:
        for night in range(RUNS):
            broken = night % 5 == 4
            file = scan_pipeline.scan_file(
                wrong if broken else right, name="broken" if broken else "shop"
            )
            process = scan_pipeline.start("run", file)
            process.communicate(timeout=120)
            codes.append((night, process.returncode))

    assert codes == [(night, 1 if night % 5 == 4 else 0) for night in range(RUNS)]
