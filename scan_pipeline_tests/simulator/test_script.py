from typing import get_args

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.answer_faults import Failing
from scan_pipeline.simulator.faults import Fault, FilterChanged, ShortPage
from scan_pipeline.simulator.mutations import Delete
from scan_pipeline.simulator.page_fault import PageFault
from scan_pipeline.simulator.script import Script, parse_script


def test_a_script_is_read_from_a_mapping():
    script = parse_script(
        {
            "mutations": [{"kind": "delete", "after_page": 2, "first": 5, "last": 9}],
            "faults": [
                {"kind": "short_page", "page": 3, "rows": 7},
                {"kind": "failing", "page": "every", "last_attempt": 2, "retry_after_s": 1},
                {"kind": "filter_changed", "page": "last", "filters": [["region", "us"]]},
            ],
            "cursors": "single_use",
        }
    )

    assert script == Script(
        mutations=(Delete(after_page=2, first=5, last=9),),
        faults=(
            ShortPage(page=3, rows=7),
            Failing(page="every", last_attempt=2, retry_after_s=1),
            FilterChanged(page="last", filters=(("region", "us"),)),
        ),
        cursors="single_use",
    )


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"mutation": []}, "mutation"),
        ({"faults": [{"kind": "explodes", "page": 1}]}, "explodes"),
        ({"faults": [{"page": 1}]}, "kind"),
        ({"faults": [{"kind": "short_page", "page": 1}]}, "rows"),
        ({"faults": [{"kind": "short_page", "page": "1", "rows": 3}]}, "page"),
        ({"faults": [{"kind": "short_page", "page": 0, "rows": 3}]}, "page"),
        ({"faults": [{"kind": "short_page", "page": 1, "rows": 3, "colour": "red"}]}, "colour"),
        ({"faults": [{"kind": "failing", "page": 1, "status": 200}]}, "status"),
        ({"mutations": [{"kind": "delete", "first": 5}]}, "after_page"),
        ({"cursors": "reusable"}, "cursors"),
        ({"faults": {1, 2}}, "JSON"),
    ],
)
def test_a_script_is_refused_unless_it_is_right_to_the_letter(raw, told):
    with pytest.raises(ContractError, match=told):
        parse_script(raw)


@pytest.mark.parametrize(
    ("fault", "pages"),
    [
        (ShortPage(page=3, rows=1), [3]),
        (ShortPage(page=3, through=5, rows=1), [3, 4, 5]),
        (ShortPage(page=3, through="end", rows=1), [3, 4, 5, 6, 7]),
        (ShortPage(page="every", rows=1), [1, 2, 3, 4, 5, 6, 7]),
        (ShortPage(page="last", rows=1), [7]),
    ],
)
def test_a_fault_strikes_its_pages(fault, pages):
    struck = [n for n in range(1, 8) if fault.strikes(page=n, is_last=n == 7, attempt=1)]

    assert struck == pages


def test_a_fault_strikes_its_attempts():
    fault = ShortPage(page=1, rows=1, first_attempt=2, last_attempt=3)

    struck = [n for n in range(1, 6) if fault.strikes(page=1, is_last=False, attempt=n)]

    assert struck == [2, 3]


def test_every_fault_can_be_scripted_and_has_a_kind_of_its_own():
    kinds = {fault.__dataclass_fields__["kind"].default for fault in get_args(Fault)}

    # Other dialects have faults of their own.
    rooms = {fault.__module__ for fault in get_args(Fault)}
    known = {each for each in PageFault.__subclasses__() if each.__module__ in rooms}
    assert set(get_args(Fault)) == known
    assert len(kinds) == len(get_args(Fault))
