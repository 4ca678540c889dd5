"""The conformance kit: any source, ours or yours, held to what every source must do.

See docs/conformance.md. It needs no pytest and no network.
"""

from scan_pipeline.testing.app_bench import AppBench, AsgiTransport
from scan_pipeline.testing.behaviours import BEHAVIOURS, Behaviour
from scan_pipeline.testing.bench import Bench, Opened
from scan_pipeline.testing.conformance import (
    Conformance,
    ConformanceError,
    Report,
    Result,
    conformance,
)
from scan_pipeline.testing.facts_bench import FactsBench
from scan_pipeline.testing.faults import Fault, FaultKind, NotExercisedError

__all__ = [
    "BEHAVIOURS",
    "AppBench",
    "AsgiTransport",
    "Behaviour",
    "Bench",
    "Conformance",
    "ConformanceError",
    "FactsBench",
    "Fault",
    "FaultKind",
    "NotExercisedError",
    "Opened",
    "Report",
    "Result",
    "conformance",
]
