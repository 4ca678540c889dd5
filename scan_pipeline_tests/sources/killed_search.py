"""A walk over a search engine in a process of its own, killed with some pages durable.

python -m scan_pipeline_tests.sources.killed_search '{"root": ..., "edits": ..., "after": 3}'
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import edited
from scan_pipeline_tests.sources.search_engines import CUSTOMERS, ENVIRON
from scan_pipeline_tests.stages.breaking import break_off
from scan_pipeline_tests.stages.night_process import project_in


class Dying(Workspace):
    """Kills this process where its walk would let go of the source."""

    def source(self, *arguments: Any, **named: Any) -> Any:
        source = super().source(*arguments, **named)
        source.close = lambda: os.kill(os.getpid(), signal.SIGKILL)
        return source


def main(settings: Mapping[str, Any]) -> None:
    scan = parse_scan(edited(CUSTOMERS, settings["edits"]))
    place = Dying(project_in(Path(settings["root"])), environ=ENVIRON)
    break_off(scan, place, after=settings["after"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
