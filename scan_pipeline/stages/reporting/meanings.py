"""What the closed words of a receipt mean, in a sentence each, for who does not know them."""

from collections.abc import Mapping
from typing import Final

from scan_pipeline.core.vocabulary import (
    AssumptionBasis,
    ConclusionScope,
    Consistency,
    CoverageStatus,
    Mode,
)

STATUS: Final[Mapping[CoverageStatus, str]] = {
    "verified": "Yes. The walk reached the end that the source declares, the collection was held "
    "still, and a number that does not come from the walk agrees with what arrived.",
    "corroborated": "As far as two walks can tell. Both went to the declared end and brought the "
    "same records; no independent number proves that none is left out of both.",
    "unknown": "Not proven. Nothing contradicts what was read, but nothing shows that it is all.",
    "failed": "No. The evidence disagrees with itself, so nothing may be concluded of the whole.",
}

MODE: Final[Mapping[Mode, str]] = {
    "full": "the whole collection",
    "bounded": "a declared cap of the collection, which is the population of a review",
    "sync": "a round of changes since a checkpoint",
    "trial": "a trial of a few pages, which proves nothing",
}

ROUND_STATUS: Final[Mapping[CoverageStatus, str]] = {
    **STATUS,
    "verified": "Yes, as a round. Every change since it began was read, up to the link that begins "
    "the next one; the source documents that nothing is left out then.",
}
"""The same of a round of changes, which is no collection."""

ROUND_CONSISTENCY: Final = (
    "nothing holds the rows still; what changes while they are read comes with the round that "
    "begins at this one's link, if the source counts its changes from the start"
)
"""What stands for consistency in a round of changes."""

CONSISTENCY: Final[Mapping[Consistency, str]] = {
    "snapshot": "one version of the source was asked for on every request",
    "change_token": "the source's token of its state was read before and after",
    "high_water_mark": "an upper bound was read first and sent on every request",
    "two_equal_walks": "the collection was walked twice and the walks were held against each other",
    "live": "nothing holds the collection still; rows may come, go and move while it is read",
}

SCOPE: Final[Mapping[ConclusionScope, str]] = {
    "all_records_in_snapshot": "all records of the version that was asked for",
    "all_records_at_change_token": "all records in the state that the change token names",
    "all_records_up_to_high_water_mark": "all records up to the bound that was read first",
    "all_records_present_throughout_both_walks": "all records that were there during both walks",
    "all_changes_since_checkpoint": "all changes since the checkpoint",
    "bounded_view": "the records up to a declared cap; others may exist",
    "records_encountered_in_live_traversal": "the records that the walk met; others may exist",
    "observed_pages_only": "the pages that were read and nothing beyond them",
}

BASIS: Final[Mapping[AssumptionBasis, str]] = {
    "provider_documented": "the provider documents it",
    "user_declared": "the scan file declares it",
    "observed": "it was observed during the walk",
    "assumed": "nobody said so: it is assumed",
}

ASSUMPTION: Final[Mapping[str, str]] = {
    "checkpoint_covers_all_writes": "A round's link leads to every change since the round began.",
    "baseline_keeps_what_stays": "The pages of a baseline pass no record over that stays.",
    "returning_records_come_whole": "A record that was removed comes back whole.",
    "pin_honoured": "The source answers from the version that each request names.",
    "pin_names_one_version": "The names that the source gives its version all mean the same one.",
    "append_only": "Rows are only ever added.",
    "rows_immutable": "A row does not change once it is there.",
    "keys_visible_in_order": "No row appears later below a key that was already visible.",
    "token_covers_all_writes": "The change token moves with every insert, update and delete.",
    "token_never_returns": "The change token never returns to a value that it had.",
    "key_immutable": "A record keeps its key.",
    "continuations_go_by_key": "The source's links and tokens go on by key and not by offset.",
    "count_exact": "The count that the source reports is exact.",
    "end_signal_is_denominator": "The source's end signal alone says that nothing is missing.",
    "principal_view_constant": "The principal saw the same collection from first page to last.",
    "token_repeatable": "A token asked for twice gives the same page.",
    "next_link_keeps_filter": "A next link that does not repeat the filter keeps it.",
}
"""By name of the assumption; others are told by their name."""

EXPECTATION: Final[Mapping[str, str]] = {
    "source_count": "the source's own count",
    "count": "a count known from elsewhere",
    "partition_counts": "a count for each partition",
    "id_sequence": "ids without a gap",
    "manifest": "a list of the keys",
    "source_root": "a root that the source publishes",
    "every_record": "records that break what the filter promises",
    "swing": "the last accepted generation, within a bound",
}
"""By name of the expectation; others are told by their name."""

READERS: Final[Mapping[str, str]] = {
    "verified_assets": "readers who ask for the whole",
    "partial_assets": "readers who ask for a lesser scope by name",
    "published": "the published table",
}
"""By what a receipt opens to."""
