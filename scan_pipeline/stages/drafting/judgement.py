"""The contract of a draft: what it may count as, in the least words."""

from collections.abc import Mapping
from typing import Any, Final

from scan_pipeline.stages.drafting.keys import is_named_like_a_key
from scan_pipeline.stages.drafting.proposal import CONFIRM, Notes
from scan_pipeline.stages.drafting.providers import provided

SECONDS: Final = 3600
"""Seconds a drafted walk may take."""

PAGES_OVER: Final = 2
"""How many times the pages that the count implies a drafted walk may read."""

PAGES_UNKNOWN: Final = 10_000
"""Pages that a drafted walk may read where nothing says how many there are."""

LIVE: Final = "records_encountered_in_live_traversal"


def draft_contract(
    facts: Mapping[str, Any],
    key: tuple[str, ...] | None,
    implied: int | None,
    records: list[Mapping[str, Any]],
    notes: Notes,
    *,
    pinned: bool,
) -> dict[str, Any]:
    """Return a contract that claims no more than two pages allow.

    Args:
        facts: the drafted source.
        key: fields that may be the key; None where there are none.
        implied: pages of the whole, None where nothing implies them.
        records: the records that were seen.
        notes: takes the remarks.
        pinned: whether a pin was seen to hold.
    """
    contract: dict[str, Any] = {}
    if key is None:
        notes.leave(
            "contract.key",
            "the fields that name a record, e.g. [id]; in the records seen no field and no pair of "
            "fields is always there, never null and never twice",
        )
    else:
        contract["key"] = list(key)
        weaker = "" if is_named_like_a_key(key[0]) else ", and its name does not say so"
        notes.say(
            "contract.key",
            f"guess: never null and never twice in {len(records):,} records{weaker}; {CONFIRM} "
            "that it stays so.",
        )
    contract["consistency"] = "snapshot" if pinned else "live"
    if pinned:
        notes.say(
            "contract.consistency",
            "weaker: until the count is confirmed as exact nothing but the source's end says that "
            "all was read, so a walk is at most unknown. Confirmed both, remove accept below: then "
            "a walk that agrees is verified.",
        )
    else:
        notes.say(
            "contract.consistency",
            "live: a walk is at most unknown, because nothing that was seen holds the collection "
            "still while it is read: records that come, go or move meanwhile may be missed, and "
            "neither a matching count nor unique keys would show it.",
        )
    exact = (provided(facts).get("count") or {}).get("exactness") == "exact"
    limits: dict[str, Any] = {"over_count": 0.1} if exact else {}
    if not exact:
        limits["pages"] = PAGES_UNKNOWN if implied is None else max(10, implied * PAGES_OVER)
    contract["limits"] = {**limits, "seconds": SECONDS}
    notes.say(
        "contract.limits",
        "a walk that reaches one of them is interrupted, and never called whole.",
    )
    contract["accept"] = {"scope": LIVE}
    notes.say(
        "contract.accept",
        "weaker: counts as done when a walk reached the declared end; this says nothing about "
        "records that it did not meet.",
    )
    return contract
