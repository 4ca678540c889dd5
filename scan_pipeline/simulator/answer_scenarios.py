"""Scenarios of single answers: their bytes, their connection, their size."""

from typing import Final

from scan_pipeline.simulator.answer_faults import (
    BodyTruncated,
    ConnectionCut,
    ErrorEnvelope,
    Failing,
    InvalidUtf8,
    LoginPage,
    MemberDoubled,
    ResponseLost,
)
from scan_pipeline.simulator.faults import RecordDamaged
from scan_pipeline.simulator.scenario import SMALL, Scenario
from scan_pipeline.simulator.script import Script

ANSWER_SCENARIOS: Final = (
    Scenario(
        name="answer_lost_single_use",
        note="Cursors are used once, and the answer to page 4 is lost after the work was done.",
        script=Script(faults=(ResponseLost(page=4, last_attempt=1),), cursors="single_use"),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="flaky",
        note="503 twice, 429 with Retry-After, a cut and a lost answer; then each recovers.",
        script=Script(
            faults=(
                Failing(page=2, last_attempt=2),
                Failing(page=4, status=429, retry_after_s=1, last_attempt=1),
                ConnectionCut(page=6, last_attempt=1),
                ResponseLost(page=7, last_attempt=1),
            )
        ),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="rate_limited",
        note="Every page is refused once with 429.",
        script=Script(
            faults=(Failing(page="every", status=429, retry_after_s=0, last_attempt=1),),
        ),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="body_truncated",
        note="The JSON of page 4 stops half way.",
        script=Script(faults=(BodyTruncated(page=4),)),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="error_envelope",
        note="Page 4 is an error with status 200.",
        script=Script(faults=(ErrorEnvelope(page=4),)),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="login_page",
        note="Page 4 is a login form with status 200.",
        script=Script(faults=(LoginPage(page=4),)),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="items_doubled",
        note="Page 4 has a second, empty member items, and parsers keep the last.",
        script=Script(faults=(MemberDoubled(page=4),)),
        size=SMALL,
        naive_claim="Read all 900 customers on 10 pages. 136 still need schema version 3.",
        may_verify=False,
    ),
    Scenario(
        name="invalid_utf8",
        note="Page 4 has a byte that is not UTF-8.",
        script=Script(faults=(InvalidUtf8(page=4),)),
        size=SMALL,
        naive_claim="Read all 300 customers on 3 pages. The migration is complete.",
        may_verify=False,
    ),
    Scenario(
        name="one_not_conforming",
        note="The status of customer-77 is a number: collected, and not conforming.",
        script=Script(
            faults=(RecordDamaged(page="every", number=77, damage="type_changed"),),
        ),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=True,
    ),
    Scenario(
        name="one_without_key",
        note="customer-77 comes without its customer_id.",
        script=Script(
            faults=(RecordDamaged(page="every", number=77, damage="key_missing"),),
        ),
        size=SMALL,
        naive_claim=(
            "Read 1,000 of 1,000 customers on 10 pages: nothing is missing. "
            "136 still need schema version 3."
        ),
        may_verify=False,
    ),
    *(
        Scenario(
            name=name,
            note=note,
            size=size,
            naive_claim=f"Read {read}: nothing is missing. The migration is complete.",
            may_verify=True,
        )
        for name, note, size, read in (
            ("no_customer", "There is none.", 0, "0 of 0 customers on 1 page"),
            ("one_customer", "There is one.", 1, "1 of 1 customer on 1 page"),
            (
                "exactly_one_page",
                "The first page is full and the last.",
                100,
                "100 of 100 customers on 1 page",
            ),
            (
                "one_over_a_page",
                "The second page holds one row.",
                101,
                "101 of 101 customers on 2 pages",
            ),
        )
    ),
)
"""What a page is made of, or travels on, is not what it should be."""
