"""The second of two whole walks over one collection, as a receipt tells it."""

from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import LimitName, StopReason, Traversal


@record
class SecondWalkFigures:
    """What the second walk brought, held against the first by key.

    Attributes:
        unique_ids_observed: distinct keys.
        leaves: leaves of its tree.
        partitions: partitions that hold records.
        root: hex; None where a conflict or a record without key forbids one.
        only_in_first: keys that the first walk brought and the second did not.
        only_in_second: keys that the second walk brought and the first did not.
        differing: keys that both brought, with different content.
    """

    unique_ids_observed: int
    leaves: int
    partitions: int
    root: str | None
    only_in_first: int
    only_in_second: int
    differing: int

    def differences(self) -> str:
        """Say in words how the two walks differ."""
        return (
            f"{self.only_in_first:,} keys only in the first walk, {self.only_in_second:,} only in "
            f"the second, {self.differing:,} differing"
        )


@record
class SecondWalk:
    """The account of the second walk, sent after the first ended.

    Its records are not kept beside the first walk's, only their keys and leaf hashes; its pages
    are, as a shard of their own in the same table.

    Attributes:
        cursor_chain_digest: its own chain, whose open event names the end of the first walk's.
        observation_started_at: when it was opened, UTC.
        last_page_at: when its last page came, UTC.
        pages_observed: pages.
        records_observed: records delivered.
        bytes_observed: bytes of its bodies.
        attempts: sends of its pages.
        refused_responses: answers that were not pages.
        traversal: how it stopped.
        stop_reason: why.
        limits_hit: limits that stopped it; they apply to each walk alike.
        end_signal: the declared signal that ended it, None where none did.
        figures: None where its keys and leaf hashes could not be read.
    """

    cursor_chain_digest: str
    observation_started_at: str
    last_page_at: str | None
    pages_observed: int
    records_observed: int
    bytes_observed: int
    attempts: int
    refused_responses: int
    traversal: Traversal
    stop_reason: StopReason
    limits_hit: tuple[LimitName, ...]
    end_signal: str | None
    figures: SecondWalkFigures | None


def why_not_equal(second: SecondWalk | None, *, root: str | None) -> str | None:
    """Say why a second walk does not corroborate the first, None where it does.

    Args:
        second: the second walk, None where there was none.
        root: root of the first, hex.
    """
    if second is None:
        return "only one walk was made"
    if second.traversal != "finished":
        stopped = second.stop_reason.replace("_", " ")
        return f"the second walk did not finish: {stopped}"
    if second.end_signal is None:
        return "no declared end signal was seen in the second walk"
    if second.limits_hit:
        return f"limits were hit in the second walk: {', '.join(second.limits_hit)}"
    if root is None or second.figures is None or second.figures.root != root:
        return "the two walks are not equal"
    return None
