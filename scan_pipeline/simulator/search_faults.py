"""What can go wrong with a search, by page, and what an index is made of."""

from typing import Any, Literal, TypeAlias

from scan_pipeline.core.value import record
from scan_pipeline.simulator.page_fault import PageFault

SearchDamage: TypeAlias = Literal[
    "shard_failed",
    "shard_failed_empty",
    "shard_missing",
    "timed_out",
    "terminated_early",
    "cluster_skipped",
    "total_gte",
    "context_missing",
    "rejected",
    "unavailable",
    "pit_unnamed",
    "pit_not_honoured",
]


@record
class SearchFault(PageFault):
    """A page of a search that is not what it should be, or none.

    Attributes:
        kind: `shard_failed` and `timed_out` leave out hits of the page, `shard_failed_empty` all of
            them, although the request allows no partial results; `shard_missing` and
            `cluster_skipped` search less than the point in time spans; `total_gte` counts no
            further than half; `context_missing` is 404, `rejected` 429, `unavailable` 503;
            `pit_unnamed` names no `pit_id`; `pit_not_honoured` searches what is there now.
    """

    kind: SearchDamage


def damaged_facts(kinds: frozenset[str], facts: dict[str, Any], *, total: int) -> dict[str, Any]:
    """Return what an answer says around its hits, as the faults have it.

    Args:
        kinds: the faults that strike.
        facts: what it would say.
        total: documents that match.
    """
    shards = dict(facts["_shards"])
    if {"shard_failed", "shard_failed_empty"} & kinds:
        shards |= {"successful": shards["total"] - 1, "failed": 1}
    if "shard_missing" in kinds:
        shards |= {"total": shards["total"] - 1, "successful": shards["total"] - 1}
    changed = {**facts, "_shards": shards}
    if "timed_out" in kinds:
        changed["timed_out"] = True
    if "terminated_early" in kinds:
        changed["terminated_early"] = True
    if "cluster_skipped" in kinds:
        changed["_clusters"] = {"total": 2, "successful": 1, "skipped": 1}
    if "pit_unnamed" in kinds:
        changed.pop("pit_id", None)
    if "total_gte" in kinds:
        changed["total"] = {"value": total // 2, "relation": "gte"}
    return changed
