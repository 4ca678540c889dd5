"""Scenarios of a population that is not the same on every page."""

from typing import Final

from scan_pipeline.simulator.answer_faults import Failing
from scan_pipeline.simulator.faults import (
    CountChanged,
    FilterChanged,
    PinNotHonoured,
    PrincipalNarrowed,
    SnapshotChanged,
    SnapshotExpired,
)
from scan_pipeline.simulator.mutations import Delete, Insert, Move, Update
from scan_pipeline.simulator.scenario import SMALL, Scenario
from scan_pipeline.simulator.script import Script

MOVING_SCENARIOS: Final = (
    Scenario(
        name="count_changes",
        note="Page 5 reports one customer more.",
        script=Script(faults=(CountChanged(page=5, by=1),)),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="snapshot_changes",
        note="Three customers appear and page 4 comes from a new snapshot.",
        script=Script(
            mutations=(Insert(after_page=3, first=1_001, last=1_003),),
            faults=(SnapshotChanged(page=4),),
        ),
        size=SMALL,
        naive_claim=(
            "Read 1,003 of 1,003 customers on 11 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="snapshot_expires",
        note="The snapshot of the first walk can no longer be read at page 5.",
        script=Script(faults=(SnapshotExpired(page=5, last_attempt=1),)),
        size=SMALL,
        naive_claim="Read all 400 customers on 4 pages. The migration is complete.",
        may_verify=True,
    ),
    Scenario(
        name="pin_not_honoured",
        note="The snapshot id is echoed while rows of page 1 change under it; every count holds.",
        script=Script(
            mutations=(Update(after_page=5, first=7, last=9, status="suspended"),),
            faults=(PinNotHonoured(page="every"),),
        ),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="principal_narrowed",
        note="From page 4 on the token sees tenant acme only; identity and count follow.",
        script=Script(faults=(PrincipalNarrowed(page=4),)),
        size=SMALL,
        naive_claim="Read all 722 customers on 8 pages. 76 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="principal_narrowed_silently",
        note="From page 4 on the token sees tenant acme only; nothing tells.",
        script=Script(faults=(PrincipalNarrowed(page=4, identity="silent", count="stays"),)),
        size=SMALL,
        naive_claim="Read all 722 customers on 8 pages. 76 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="filter_changes_on_retry",
        note="Page 3 fails once; the retry is answered without the filter.",
        script=Script(
            faults=(Failing(page=3, last_attempt=1), FilterChanged(page=3, first_attempt=2))
        ),
        size=SMALL,
        query={"region": "eu"},
        naive_claim="Read all 482 customers on 5 pages. 60 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="timestamp_ties",
        note="Ordered by a timestamp without a tie-breaker: ties on a page edge are lost.",
        query={"order": "updated_at", "tie_breaker": "none"},
        naive_claim="Read all 6,300 customers on 63 pages. 3,104 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="insert_before_cursor",
        note="A live view, newest first: three customers appear behind the reader's back.",
        script=Script(mutations=(Insert(after_page=3, first=1_001, last=1_003),)),
        size=SMALL,
        query={"view": "live", "order": "-updated_at"},
        naive_claim="Read all 1,000 customers on 10 pages. 136 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="delete_ahead_of_cursor",
        note="A live view: fifty customers vanish before they were read.",
        script=Script(mutations=(Delete(after_page=3, first=901, last=950),)),
        size=SMALL,
        query={"view": "live"},
        naive_claim=(
            "Read 950 of 950 customers on 10 pages: nothing is missing. "
            "117 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="live_and_quiet",
        note="A live view, and nobody writes; the change token stays.",
        size=SMALL,
        query={"view": "live"},
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="written_in_mid_walk",
        note="A live view: one customer behind the cursor changes; the token tells alone.",
        script=Script(mutations=(Update(after_page=5, first=7, status="suspended"),)),
        size=SMALL,
        query={"view": "live"},
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="inserted_and_deleted",
        note="A live view: one customer comes and goes between two pages; only the token tells.",
        script=Script(
            mutations=(Insert(after_page=5, first=1_001), Delete(after_page=5, first=1_001))
        ),
        size=SMALL,
        query={"view": "live"},
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="rows_move_across_cursor",
        note="A live view: fifty customers slip behind the cursor, fifty come a second time.",
        script=Script(
            mutations=(
                Move(after_page=3, first=901, last=952, to="newest"),
                Move(after_page=3, first=1, last=50, to="oldest"),
            )
        ),
        size=SMALL,
        query={"view": "live", "order": "-updated_at"},
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "118 still need schema version 3."
        ),
        may_verify=False,
    ),
    Scenario(
        name="mutable_filter",
        note="A live view of schema version 2, while rows on both sides of the cursor change it.",
        script=Script(
            mutations=(
                Update(after_page=2, first=641, last=660, schema_version=2),
                Update(after_page=2, first=1_981, last=2_000, schema_version=3),
            )
        ),
        size=2_000,
        query={"view": "live", "schema_version": "2"},
        naive_claim="Read all 499 customers on 5 pages. 499 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="appended_behind_bound",
        note="An append-only view up to sequence 1,000; ten customers more come too late for it.",
        script=Script(mutations=(Insert(after_page=3, first=1_001, last=1_010),)),
        size=SMALL,
        query={"view": "live", "up_to": "1000"},
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="two_walkers",
        note="Each walk has cursors of its own, and a customer vanishes between their starts.",
        script=Script(mutations=(Delete(after_page=1, first=1_000),), walk_nonces=True),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
)
"""Rows, snapshot, view, filter or count change while somebody reads."""
