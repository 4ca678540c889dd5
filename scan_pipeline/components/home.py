"""Dagster's home: where it keeps partitions, runs and verdicts, and how it queues runs.

Without a persistent home every partition is lost with the process that made it.
"""

from pathlib import Path
from typing import Final

from scan_pipeline.store.project import create_once

DAGSTER_YAML: Final = """\
# Written once by scan_pipeline; yours to change from here on.
telemetry:
  enabled: false
nux:
  enabled: false

concurrency:
  runs:
    max_concurrent_runs: 8
  pools:
    # The stages of all scans of a host share a pool that bears its name: one run of them at a time.
    default_limit: 1
    granularity: run

# Says of each receipt whether it is overdue by its scan's schedule.
freshness:
  enabled: true

# A run whose process died is noticed, and tried once more: it takes its generation up again.
# What a stage itself refused is not: retries of requests belong to the scan's contract.
run_monitoring:
  enabled: true
run_retries:
  enabled: true
  max_retries: 1
  retry_on_asset_or_op_failure: false
"""
"""Settings of a home that this project makes (dagster.yaml of dagster 1.13)."""


def prepare_home(home: Path) -> Path:
    """Make a Dagster home with its settings; one that has settings keeps them.

    Args:
        home: the folder, which becomes `DAGSTER_HOME`.

    Returns:
        The path of its settings.
    """
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    create_once(settings, data=DAGSTER_YAML.encode(), mode=0o644)
    return settings
