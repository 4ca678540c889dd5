"""Whether a version in the answers holds the collection still, as far as can be seen."""

from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.page import Next, Position
from scan_pipeline.stages.drafting.answers import FirstAnswer, told
from scan_pipeline.stages.drafting.candidates import pin_at
from scan_pipeline.stages.drafting.figures import version_of
from scan_pipeline.stages.drafting.proposal import CONFIRM, Notes
from scan_pipeline.stages.drafting.trial import Trials, Tried


def draft_pin(
    tried: Tried,
    facts: dict[str, Any],
    pages: list[FirstAnswer],
    notes: Notes,
    trials: Trials,
) -> bool:
    """Draft a pin, and say whether it was seen to hold.

    It holds where both pages come again under the version they name, and an unknown version is
    refused: a source that reads no such parameter would show the first of these as well.
    """
    found = version_of(pages)
    wanted = "snapshot" in facts
    walked = facts.get("protocol") in ("page_token", "last_key")
    if found is None or len(tried.pages) < 2 or not walked:
        return False
    path, version = found
    pin = pin_at(path)
    if wanted:
        notes.say(
            "source.snapshot",
            f"guess: the source refused a second page without {path[-1]}, and gave it with that of "
            "the first.",
        )
    if not _held(tried, {**tried.facts, "snapshot": pin}, version, trials):
        notes.say(
            "source.snapshot" if wanted else "source",
            f"{told(path)} looks like a version; sent back as {path[-1]} it did not show that it "
            "holds the pages still and that an unknown one is refused, so no snapshot is claimed.",
        )
        return False
    facts["snapshot"] = pin
    notes.say(
        "source.snapshot",
        f"guess: both pages name one version at {told(path)}; sent back as {path[-1]} it gave the "
        "same pages again, and an unknown version was refused.",
        f"basis: user_declared - {CONFIRM} that the version holds the collection still.",
    )
    return True


def _held(tried: Tried, pinned: Mapping[str, Any], version: str, trials: Trials) -> bool:
    """Say whether both pages come again under a version, and none under an unknown one."""
    first, second = tried.pages
    following = first.continuation
    token = following.token if isinstance(following, Next) else None
    for page, asked in ((first, None), (second, token)):
        again = trials.page(pinned, Position(token=asked, pin=version))
        if again is None or again.reported.pin != version:
            return False
        if list(again.leaf_hashes) != list(page.leaf_hashes):
            return False
    return trials.page(pinned, Position(pin=f"{version}-unknown")) is None
