"""Where each case of the two files is replayed, and what of a case we do otherwise."""

from collections.abc import Mapping
from typing import Final

from scan_pipeline_tests.cases import field_styles, peer_styles
from scan_pipeline_tests.cases.replay import load
from scan_pipeline_tests.sources.mcp_cases import CASES as MCP_CASES

_WALKS = "scan_pipeline_tests.cases.test_cases"
_DELTA = "scan_pipeline_tests.cases.test_delta_cases"
_FRAMES = "scan_pipeline_tests.cases.test_frame_cases"
_READERS = "scan_pipeline_tests.cases.test_reader_cases"
_GATE = "scan_pipeline_tests.components.test_gate_cases"
_SQL = "scan_pipeline_tests.sources.test_sql"

TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "C040": (f"{_READERS}:test_c040_count_of_a_clamped_page_is_no_total",),
    "C045": (f"{_SQL}:test_case_c045_offset_over_a_column_that_rows_keep_updating",),
    "C051": (f"{_SQL}:test_case_c051_rows_stamped_before_the_run_and_visible_after_it",),
    "C088": (f"{_WALKS}:test_receipt_of_a_narrow_scope_does_not_open_the_wider_one",),
    "C100": (
        f"{_GATE}:test_c100_partition_whose_run_was_dropped_opens_nothing_and_runs_by_hand",
        f"{_GATE}:test_c100_what_dagster_was_not_told_of_is_told_at_the_next_look",
    ),
    "C101": (
        f"{_READERS}:test_c101_live_walk_does_not_close_a_pending_row_as_absent",
        f"{_READERS}:test_c101_complete_walk_closes_it_and_proves_the_absence",
    ),
    "C103": (f"{_DELTA}:test_c103_overwrite_from_an_old_handle_leaves_no_row_of_another_writer",),
    "C104": (
        f"{_DELTA}:test_c104_overwritten_generation_holds_the_new_rows_alone",
        f"{_DELTA}:test_c104_overwrite_that_left_the_old_rows_is_found_when_read_back",
    ),
    "C108": (
        f"{_DELTA}:test_c108_rows_with_a_column_that_the_table_lacks_are_refused_by_name",
        f"{_DELTA}:test_c108_generation_with_another_column_keeps_it_where_that_is_asked_for",
        f"{_DELTA}:test_c108_field_that_the_schema_does_not_know_is_kept_and_told",
    ),
    "C109": (
        f"{_DELTA}:test_c109_commit_that_is_sent_again_doubles_no_row",
        f"{_DELTA}:test_c109_write_under_a_committed_version_is_refused",
    ),
    "C112": (f"{_FRAMES}:test_c112_fraction_does_not_become_a_whole_number",),
    "C115": (
        f"{_FRAMES}:test_c115_validation_is_as_deep_whatever_the_environment_says",
        f"{_FRAMES}:test_c115_uniqueness_that_only_a_batch_would_see_is_refused",
        f"{_FRAMES}:test_c115_unique_key_is_held_against_all_records",
    ),
    "C116": (
        f"{_GATE}:test_c116_report_runs_behind_no_failed_check",
        f"{_GATE}:test_c116_report_by_hand_is_stopped_by_a_check_that_blocks_nothing",
    ),
    "C117": (
        f"{_GATE}:test_c117_report_does_not_run_without_a_verdict",
        f"{_GATE}:test_c117_verdict_that_could_not_be_computed_is_none",
    ),
    "C122": (f"{_READERS}:test_c122_what_is_stored_and_what_was_shown_are_two_facts",),
    "C125": (f"{_READERS}:test_c125_history_that_cannot_page_supports_no_word_of_absence",),
    "C126": (f"{_READERS}:test_c126_nothing_in_the_newest_rows_is_not_told_as_nothing",),
    "keyset-sql-tiebreak": (f"{_SQL}:test_case_keyset_sql_tiebreak_keeps_a_tie_across_pages",),
}
"""By case, tests of its own: `module:function`. Those that walk are replayed by their style too."""

_RESUMED = (
    "a generation that hit a limit is closed under its receipt; the next one begins from nothing "
    "and is told apart, so there is no place to resume from"
)
_APART = "each part is a scan of its own with its own end and receipt; there is no sum of them"

OTHERWISE: Final[Mapping[str, str]] = {
    "C005": _RESUMED,
    "C032": (
        "no protocol of ours splits a result window by a key: the window is told as "
        "`source_window` and the walk is closed, where the case goes on in a second segment"
    ),
    "C034": _RESUMED,
    "C053": (
        "walked by a scroll in the report; we walk by a point in time, with the scroll's ids as "
        "its names"
    ),
    "C075": _RESUMED,
    "C078": _APART,
    "C081": _APART,
    "C086": _APART,
    "C100": (
        "a partition that was added and whose run Dagster dropped is not begun by us: it stays "
        "missing in Dagster and opens to nobody until somebody runs it"
    ),
    "C101": (
        "we keep no list of rows pending: whether one is absent is concluded, or proven, from a "
        "receipt, and not from a walk over a source that pins nothing"
    ),
    "C115": (
        "the receipt says how many rows were admitted and how many do not conform, and no depth: "
        "there is one depth, which nothing outside sets"
    ),
    "aip158-max-results": _RESUMED + "; a page is kept whole, so nothing is skipped in it",
    "cur-max-pages": _RESUMED,
    "page-filtered-client-side": "a scan keeps every record it received; a reader filters",
}
"""By case, what of it we do otherwise, and why; the rest of it is replayed."""


def replayed_by_style() -> frozenset[str]:
    """Return the cases that a builder of scan files replays, or the bench of MCP servers."""
    found = {each["id"] for each in MCP_CASES}
    for case in load("field_cases.jsonl"):
        style = case["scenario"]["style"]
        if style in field_styles.FIELD_STYLES and field_styles.replays(case):
            found.add(case["id"])
    for case in load("peer_cases.jsonl"):
        if case["style"] in peer_styles.PEER_STYLES and peer_styles.replays(case):
            found.add(case["id"])
    return frozenset(found)
