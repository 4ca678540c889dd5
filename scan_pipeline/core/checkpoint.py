"""Checkpoints: where one round of changes ends and the next one begins.

A source that tracks changes names, at the end of a round, what to ask for to get those that come
after it: OData's delta link, a sync token. The first round, a baseline, asks for everything.
"""

from typing import Final, Literal

from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Basis, StopReason

CHECKPOINT: Final = "checkpoint"
"""Member of the facts of a last page and of a close event: the digest of the checkpoint that it
names. What that reads lies sealed in the close event, where others hold a continuation."""

SINCE: Final = "since"
"""Member of the facts of a round's open event: where it began, None for a baseline."""

GONE: Final[tuple[StopReason, ...]] = ("snapshot_expired", "principal_changed")
"""What ends a round whose checkpoint is then of no use: the next one is a new baseline."""


@record
class CheckpointFacts:
    """What a source says of its checkpoints.

    Attributes:
        covers_since: since when the changes are counted that a checkpoint leads to: the `start` of
            the round that names it, or only its `end`, so that what changed in between is in no
            round. Silence means the end.
        baseline: whether the pages of a baseline hold every record that stays, whatever comes and
            goes meanwhile (`whole`), or may pass one over, as pages by position do (`may_skip`):
            no round brings what did not change. Silence means that they may.
        updates: whether a changed record comes `whole`, or as its key and `changed_members`.
        basis: why that is believed.
    """

    covers_since: Literal["start", "end"] = "end"
    baseline: Literal["whole", "may_skip"] = "may_skip"
    updates: Literal["whole", "changed_members"] = "whole"
    basis: Basis = "user_declared"


@record
class Since:
    """Where a round began, as its open event and its receipt tell it.

    Attributes:
        generation: generation whose pages end with the checkpoint.
        receipt_id: receipt that accepted it.
        checkpoint: digest of the checkpoint, `sha256:<hex>`; what it reads stays sealed.
    """

    generation: str
    receipt_id: str
    checkpoint: str


@record
class Round:
    """One round of changes.

    Attributes:
        since: where it began; None for a baseline, which begins with nothing.
        checkpoint: digest of the checkpoint that its end named; None where it named none.
        removed_ids: keys whose last word was that they were removed.
    """

    since: Since | None
    checkpoint: str | None
    removed_ids: int = 0
