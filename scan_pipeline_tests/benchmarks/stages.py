"""Say what each stage of one enumeration costs; see docs/benchmarks.md.

python -m scan_pipeline_tests.benchmarks.stages URL OUT
"""

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import free_generation
from scan_pipeline_tests.benchmarks.enumerate import items_at, lake_in

T = TypeVar("T")


def main(url: str, out: Path) -> None:
    """Run the stages one after another; write CPU seconds, and the largest memory so far."""

    def timed(name: str, stage: Callable[[], T]) -> T:
        begun = time.process_time()
        result = stage()
        spent = time.process_time() - begun
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(f"{name:<15} {spent:6.2f} s {largest:6.0f} MB\n")
        return result

    sys.stdout.write(f"{'imports':<15} {time.process_time():6.2f} s\n")
    scan, workspace = items_at(url), lake_in(out)
    workspace.begin(scan.name)
    generation = free_generation(scan.name, workspace=workspace)
    pipeline = Pipeline(scan, generation, workspace=workspace)
    timed("pages", pipeline.pages)
    timed("records", pipeline.records)
    timed("reconciliation", pipeline.reconciliation)
    stored = timed("receipt", pipeline.receipt)
    timed("published", lambda: pipeline.published(stored))
    sys.stdout.write(f"{stored.receipt.statement}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
