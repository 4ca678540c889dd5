"""The analyses that ship, by scan, for those who run them without Dagster."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from scan_pipeline.defs.analysis_result import AnalysisResult
from scan_pipeline.defs.customers.audit_migration import run_audit
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace

Analysis: TypeAlias = Callable[[VerifiedCollection, Workspace], AnalysisResult]
"""Computes a result over an opened collection and stores it in the lake."""

ANALYSES: Final[Mapping[str, tuple[str, Analysis]]] = MappingProxyType(
    {"customers": ("migration_audit", run_audit)}
)
"""By name of the scan: the analysis's name, and what computes and stores it."""
