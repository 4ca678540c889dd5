"""Sentences about a collection, written from the question and its figures by nobody else."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.agents.answers import Ground
from scan_pipeline.agents.queries import Query
from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.claims import is_whole

_TOLD_GROUPS: Final = 12
"""Most groups whose figures stand in a sentence."""


def opened(query: Query, *, matching: int, population: int, noun: str, ground: Ground) -> str:
    """Say how many match; nothing was shown yet."""
    counted = _counted(query, matching, population, noun)
    return f"{counted}; no rows were shown yet. {_on(ground)}"


def page(
    query: Query, *, first: int, returned: int, matching: int, noun: str, ground: Ground, done: bool
) -> str:
    """Say which rows a page holds, and what is not in it."""
    last = first + returned - 1
    rows = f"rows {first:,} to {last:,}" if returned else "no rows"
    left = matching - last
    more = f"{left:,} more follow" if left else "these are the last"
    if left and done:
        more = f"the stopping policy is met, and {left:,} more match that were not given"
    return f"A page: {rows} of the {matching:,} {noun}{_where(query)}; {more}. {_on(ground)}"


def found(query: Query, *, matching: int, population: int, noun: str, ground: Ground) -> str:
    """Say what the engine found over every row of the view."""
    return f"{_counted(query, matching, population, noun)}. {_on(ground)}"


def judged(
    query: Query, *, matched: int, decided: int, matching: int, noun: str, ground: Ground
) -> str:
    """Say what a reader judged, and of how many."""
    all_of_them = decided == matching
    # Of a row it read by some columns a reader knows no more than those.
    by = f" by {', '.join(query.columns)} alone" if query.columns else ""
    far = f"all {matching:,}" if all_of_them else f"{decided:,} of the {matching:,}"
    rest = "" if all_of_them else f"; {matching - decided:,} were not judged, and any may match"
    return (
        f"A reader judged {far} {noun}{_where(query)}{by} and marked {matched:,} as a match{rest}. "
        f"{_on(ground)}"
    )


def aggregated(
    query: Query, *, groups: Sequence[Mapping[str, Any]], matching: int, noun: str, ground: Ground
) -> str:
    """Say what figures came out, and over what they were computed."""
    told = "; ".join(
        ", ".join(
            f"{name} {canonical_json(value).decode()}"
            for name, value in (*group["by"].items(), *group["figures"].items())
        )
        for group in groups[:_TOLD_GROUPS]
    )
    more = len(groups) - _TOLD_GROUPS
    rest = f"; and {more:,} groups more" if more > 0 else ""
    return f"Over all {matching:,} {noun}{_where(query)}: {told}{rest}. {_on(ground)}"


def _counted(query: Query, matching: int, population: int, noun: str) -> str:
    if not query.where:
        return f"{population:,} {noun} in the view"
    count = f"{matching:,}" if matching else "None"
    verb = "match" if matching > 1 else "matches"
    return f"{count} of the {population:,} {noun} in the view {verb} {query.words()}"


def _where(query: Query) -> str:
    return f" where {query.words()}" if query.where else ""


def _on(ground: Ground) -> str:
    """Say what the figures stand on and what they do not speak of."""
    whole = is_whole(ground.coverage_status, ground.conclusion_scope)
    limit = "" if whole else "; this is no proven whole, and records may be missing from it"
    if ground.conclusion_scope == "records_encountered_in_live_traversal":
        limit = (
            "; the source could change while it was read, so this is no proven whole: records may "
            "be missing from it, and others may have changed or gone"
        )
    newer = "".join(f"; {each}" for each in (ground.redacted, ground.newer, ground.late) if each)
    return (
        f"{ground.scan} {ground.scan_generation}, view {ground.view}: {ground.coverage_status}, "
        f"{ground.conclusion_scope}{limit}{newer}, as visible to {ground.as_visible_to}."
    )
