"""Scenarios of the walk itself: pages, cursors and ends."""

from typing import Final

from scan_pipeline.simulator.faults import (
    CompletionMisreported,
    CursorCorrupted,
    CursorDropped,
    CursorRepeats,
    EmptyPage,
    EndEarly,
    PageReplaced,
    PageSkipped,
    RowsWithheld,
    ShortPage,
)
from scan_pipeline.simulator.scenario import SMALL, Scenario
from scan_pipeline.simulator.script import Script

WALK_SCENARIOS: Final = (
    Scenario(
        name="clean",
        note="Nothing happens.",
        naive_claim=(
            "Read 8,742 of 8,742 customers on 88 pages: nothing is missing. "
            "4,785 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="first_page_clean",
        note="The newest customers are all migrated; thousands of older ones are not.",
        reader="first_page",
        naive_claim="All 100 customers have schema version 3: the migration is complete.",
        may_verify=True,
    ),
    Scenario(
        name="page_skipped_count_matches",
        note="customer-4100..customer-4199 never come, the page before comes twice: 8,742 rows.",
        script=Script(faults=(ShortPage(page=1, rows=99), PageReplaced(page=42, by=41))),
        naive_claim=(
            "Read 8,742 of 8,742 customers on 88 pages: nothing is missing. "
            "4,798 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="page_skipped",
        note="Page 4 is passed over.",
        script=Script(faults=(PageSkipped(page=4),)),
        size=SMALL,
        naive_claim="Read all 900 customers on 9 pages. 136 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="rows_withheld",
        note="Page 4 leaves out ten rows and claims them.",
        script=Script(faults=(RowsWithheld(page=4, rows=10, returned_count="as_claimed"),)),
        size=SMALL,
        naive_claim="Read all 990 customers on 10 pages. 136 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="short_and_empty_pages",
        note="Page 3 is short and page 5 empty; the walk goes on and loses nothing.",
        script=Script(faults=(ShortPage(page=3, rows=7), EmptyPage(page=5))),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 12 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="endless_empty_pages",
        note="From page 5 on every page is empty and names a further one.",
        script=Script(faults=(EmptyPage(page=5, through="end"),)),
        size=SMALL,
        naive_claim="Read all 400 customers on 120 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="cursor_repeats_page_three",
        note="Page 3 leads back to page 3.",
        script=Script(faults=(CursorRepeats(page=3, to=3),)),
        size=SMALL,
        naive_claim="Read all 12,000 customers on 120 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="cursor_cycles",
        note="Page 4 leads back to page 3: a, b, a, b.",
        script=Script(faults=(CursorRepeats(page=4, to=3),)),
        size=SMALL,
        naive_claim="Read all 12,000 customers on 120 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="cursor_repeats_in_other_words",
        note="Page 3 leads back to page 3 by a cursor that reads differently each time.",
        script=Script(faults=(CursorRepeats(page=3, to=3, fresh_text=True),)),
        size=SMALL,
        naive_claim="Read all 12,000 customers on 120 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="cursor_corrupted",
        note="The cursor of page 3 is one that the registry does not know.",
        script=Script(faults=(CursorCorrupted(page=3),)),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="cursor_dropped",
        note="Page 3 has no member next_cursor, although rows follow.",
        script=Script(faults=(CursorDropped(page=3),)),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="final_page_without_cursor",
        note="The last page says its end by leaving next_cursor out.",
        script=Script(faults=(CursorDropped(page="last"),)),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="end_dropped_early",
        note="Page 6 says that nothing follows; the count says otherwise.",
        script=Script(faults=(EndEarly(page=6),)),
        size=SMALL,
        naive_claim="Read all 600 customers on 6 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="end_dropped_early_uncounted",
        note="Page 6 says that nothing follows, and nothing says otherwise.",
        script=Script(faults=(EndEarly(page=6),)),
        size=SMALL,
        query={"count": "none"},
        naive_claim="Read all 600 customers on 6 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="signals_disagree",
        note="Page 5 says is_complete beside a live cursor.",
        script=Script(faults=(CompletionMisreported(page=5),)),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
)
"""The rows stand still; what leads from one page to the next does not."""
