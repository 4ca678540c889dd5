"""`check --conformance`: a scan's source held to the table of behaviours, offline."""

import importlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, print_json, say
from scan_pipeline.core.errors import ContractError

if TYPE_CHECKING:
    from scan_pipeline.core.scan import Scan
    from scan_pipeline.testing.bench import Bench
    from scan_pipeline.testing.conformance import Result

_WORDS = {"passed": "ok", "failed": "FAILED", "not_exercised": "-"}


def check_conformance(scan: "Scan", *, bench: str | None, as_json: bool) -> ExitCode:
    """Play every behaviour and tell what came of each.

    Args:
        scan: the scan.
        bench: dotted path of what makes a bench, given the scan; None for one made of its facts.
        as_json: whether the answer is JSON.

    Raises:
        ContractError: no bench can be made of the facts alone, or the path leads to none.
    """
    results = []
    for each in _results(bench_of(scan, bench)):
        results.append(each)
        if not as_json:
            _tell(each)
        else:
            say(f"{_WORDS[each.verdict]:<7} {each.behaviour}")
    failed = sum(each.verdict == "failed" for each in results)
    passed = sum(each.verdict == "passed" for each in results)
    left = len(results) - failed - passed
    if as_json:
        told = {"scan": scan.name, "passed": not failed and bool(passed)}
        print_json({**told, "results": [asdict(each) for each in results]})
    else:
        answer(f"{passed} ok, {failed} failed, {left} not exercised")
    return ExitCode.NOT_ACCEPTED if failed or not passed else ExitCode.ACCEPTED


def bench_of(scan: "Scan", path: str | None) -> "Bench":
    """Return the bench of a scan; raises as `check_conformance`."""
    from scan_pipeline.testing.bench import Bench
    from scan_pipeline.testing.facts_bench import FactsBench
    from scan_pipeline.testing.faults import NotExercisedError

    if path is None:
        try:
            return FactsBench(scan)
        except NotExercisedError as error:
            raise ContractError(f"{error}: name it with --bench") from error
    module, _, name = path.rpartition(".")
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ContractError(
            f"the bench {path!r} cannot be imported: {error}; expected the dotted path of a "
            "function or class that is given the scan and returns a scan_pipeline.testing.Bench"
        ) from error
    made: Any = make(scan)
    if not isinstance(made, Bench):
        raise ContractError(
            f"{path} made a {type(made).__name__}; expected a scan_pipeline.testing.Bench"
        )
    return made


def _results(bench: "Bench") -> "Iterator[Result]":
    from scan_pipeline.testing.behaviours import BEHAVIOURS
    from scan_pipeline.testing.conformance import Conformance

    kit = Conformance(bench)
    for behaviour in BEHAVIOURS:
        yield kit.run(behaviour)


def _tell(result: "Result") -> None:
    answer(f"{_WORDS[result.verdict]:<7} {result.behaviour}: {result.says}")
    if result.verdict == "failed":
        answer(f"{'':8}expected {result.expected}")
    answer(f"{'':8}{result.found}")
