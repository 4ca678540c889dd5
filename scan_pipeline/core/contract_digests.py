"""The digests of a scan's three blocks of facts.

*Scope* says which population is enumerated (source, filter, order, projection, end signal, pin);
*judgement* says what is held against it (key, schema, expectations, consistency, accept level);
*operation* says how the work is done (limits, page size, retries, schedule). Only the scope
digest decides whether two generations are comparable.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import Field as DataclassField
from typing import Any, cast

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record


@record
class ContractDigests:
    """SHA-256 of each block's canonical JSON, as `sha256:<hex>`."""

    scope: str
    judgement: str
    operation: str


def scope_facts(scan: Scan) -> dict[str, Any]:
    """Return the scope block: which population is enumerated, and how its end is told."""
    facts = stated(scan.source)
    scope = {name: value for name, value in facts.items() if name not in scan.source.OPERATION}
    return {"source": scope, "mode": scan.contract.mode}


def judgement_facts(scan: Scan, *, schema_fingerprint: str) -> dict[str, Any]:
    """Return the judgement block; the schema counts by its content, not by its name."""
    facts = stated(scan.contract)
    kept = {name: value for name, value in facts.items() if name not in ("limits", "mode")}
    return {**kept, "record_schema": schema_fingerprint}


def operation_facts(scan: Scan) -> dict[str, Any]:
    """Return the operation block: limits, page size, retries, schedule."""
    facts = stated(scan.source)
    return {
        "source": {name: facts[name] for name in scan.source.OPERATION if name in facts},
        "limits": stated(scan.contract.limits),
        "operation": stated(scan.operation),
        "schedule": stated(scan.schedule),
    }


def stated(value: Any) -> Any:
    """Return what a value says beyond its defaults, as plain JSON values.

    A field that a later version adds, and that a contract leaves alone, must not change the
    contract's digests.
    """
    if is_dataclass(value) and not isinstance(value, type):
        said = {each.name: getattr(value, each.name) for each in fields(value)}
        silent = {each.name: _default(each) for each in fields(value)}
        return {name: stated(kept) for name, kept in said.items() if kept != silent[name]}
    if isinstance(value, Mapping):
        return {str(name): stated(kept) for name, kept in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple):
        return [stated(each) for each in cast("tuple[Any, ...]", value)]
    return value


def _default(each: DataclassField[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def scope_digest(scan: Scan) -> str:
    """Return the digest by which two generations are comparable."""
    return _digest(scope_facts(scan))


def contract_digests(scan: Scan, *, schema_fingerprint: str) -> ContractDigests:
    """Return the digests of the three blocks."""
    return ContractDigests(
        scope=scope_digest(scan),
        judgement=_digest(judgement_facts(scan, schema_fingerprint=schema_fingerprint)),
        operation=_digest(operation_facts(scan)),
    )


def _digest(facts: dict[str, Any]) -> str:
    return f"sha256:{digest_of(facts).hex()}"
