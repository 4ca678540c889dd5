"""The analyses that ship, by scan, for those who run them without Dagster."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, TypeAlias

from scan_pipeline.core.value import record
from scan_pipeline.defs.analysis_result import AnalysisResult
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace

Analysis: TypeAlias = Callable[[VerifiedCollection, Workspace], AnalysisResult]
"""Computes a result over an opened collection and stores it in the lake."""


@record
class Shipped:
    """An analysis that ships; it is imported when it runs, so that nobody pays for another's.

    Attributes:
        name: its name.
        at: where it is found, `module:function`.
    """

    name: str
    at: str

    def load(self) -> Analysis:
        """Import what computes and stores it."""
        module, _, function = self.at.partition(":")
        return getattr(import_module(module), function)


ANALYSES: Final[Mapping[str, tuple[Shipped, ...]]] = MappingProxyType(
    {
        "customers": (
            Shipped(
                name="migration_audit",
                at="scan_pipeline.defs.customers.audit_migration:run_audit",
            ),
        ),
        "support_cases": (
            Shipped(
                name="recurring_defects",
                at="scan_pipeline.defs.support_cases.find_defects:run_defects",
            ),
            Shipped(
                name="model_review",
                at="scan_pipeline.defs.support_cases.review_cases:run_review",
            ),
        ),
    }
)
"""By name of the scan: its analyses, in the order they run."""
