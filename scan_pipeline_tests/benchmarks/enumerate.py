"""Enumerate the benchmark's API once, to a receipt; see docs/benchmarks.md.

python -m scan_pipeline_tests.benchmarks.enumerate URL OUT
"""

import sys
from pathlib import Path

import yaml

from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace, open_workspace

FACTS = Path(__file__).with_name("items.yaml")


def items_at(url: str) -> Scan:
    """Return the scan of the items at a URL."""
    attributes = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    attributes["source"]["url"] = url
    return parse_scan(attributes)


def lake_in(out: Path) -> Workspace:
    """Open a workspace whose lake lies in a hidden folder of `out`.

    A link beside it leads to the published table: the harness reads the first Delta table that it
    finds below `out`, and a lake holds several.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "items").symlink_to(Path(".lake", "published", "items"), target_is_directory=True)
    return open_workspace(lake=str(out / ".lake"), cwd=out, environ={})


def main(url: str, out: Path) -> int:
    """Walk, certify and publish the items at a URL; return 0 if the night was accepted."""
    receipt = run_scan(items_at(url), workspace=lake_in(out)).stored.receipt
    sys.stdout.write(f"{receipt.statement}\n")
    return 0 if receipt.accepted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
