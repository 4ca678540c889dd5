"""Enumerate the benchmark's API once, to a receipt; see docs/benchmarks.md.

    python -m scan_pipeline_tests.benchmarks.enumerate URL OUT
"""

import sys
from pathlib import Path

import yaml

from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import open_workspace

FACTS = Path(__file__).with_name("items.yaml")


def enumerate_items(url: str, out: Path) -> int:
    """Walk, certify and publish the items at a URL; return 0 if the night was accepted.

    The lake lies in a hidden folder, and a link beside it leads to the published table: the
    harness reads the first Delta table that it finds below `out`, and there are several.
    """
    attributes = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    attributes["source"]["url"] = url
    out.mkdir(parents=True, exist_ok=True)
    workspace = open_workspace(lake=str(out / ".lake"), cwd=out, environ={})
    receipt = run_scan(parse_scan(attributes), workspace=workspace).stored.receipt
    (out / "items").symlink_to(Path(".lake", "published", "items"), target_is_directory=True)
    sys.stdout.write(f"{receipt.statement}\n")
    return 0 if receipt.accepted else 1


if __name__ == "__main__":
    sys.exit(enumerate_items(sys.argv[1], Path(sys.argv[2])))
