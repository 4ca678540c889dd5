"""All that a source of one's own needs, from one place; see docs/conformance.md for one whole.

A module of your project imports from here what it uses, declares its facts, and writes `ask`. A
scan file names it: `source: {adapter: my_project.sources.Tickets, ...}`.
"""

from scan_pipeline.core.canonical import canonical_json, parse_exact
from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContinuationConsumedError,
    ContractError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
    TransientSourceError,
)
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.page import End, Next, Opening, Page, Position, Refusal, Reported
from scan_pipeline.core.source_facts import CountFacts, SnapshotFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.sources.adapter import Adapter, AdapterFacts, AdapterRef, Answered
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http_adapter import HttpAdapter, HttpAdapterFacts
from scan_pipeline.sources.secrets import SecretRef
from scan_pipeline.sources.source import Noticed, RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

__all__ = [
    "AccessRefusedError",
    "Adapter",
    "AdapterFacts",
    "AdapterRef",
    "Answered",
    "Auth",
    "ContinuationConsumedError",
    "ContractError",
    "CountFacts",
    "End",
    "FieldPath",
    "HttpAdapter",
    "HttpAdapterFacts",
    "Next",
    "Noticed",
    "Opening",
    "Page",
    "Position",
    "PositiveInt",
    "ProtocolError",
    "Refusal",
    "RefusedCallback",
    "Reported",
    "SecretRef",
    "SnapshotExpiredError",
    "SnapshotFacts",
    "Source",
    "SourceUnavailableError",
    "SourceWindowError",
    "Surroundings",
    "TransientSourceError",
    "canonical_json",
    "parse_exact",
    "record",
]
