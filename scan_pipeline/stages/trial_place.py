"""Where trials lie: below the lake, in a place that nobody reads who does not ask for it."""

from dataclasses import replace
from typing import Final

from scan_pipeline.store.project import Project

TRIALS: Final = "trials"
"""Folder of the trials below a lake, beside those of its tables."""


def trials_of(project: Project) -> Project:
    """Return the project whose lake is that of the trials; keys and trust are the same."""
    return replace(project, lake=f"{project.lake}/{TRIALS}")
