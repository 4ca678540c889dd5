"""Recurring defects: over a verified whole, with a claim, and quality apart from coverage."""

import sys
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from scan_pipeline.core.errors import ConfigurationError, GateClosedError
from scan_pipeline.defs.support_cases.find_defects import (
    LOCATION,
    QUALITY_LOCATION,
    find_defects,
    run_defects,
)
from scan_pipeline.simulator.support_cases import defect_of


def test_defects_are_found_over_every_case_and_claimed(support_cases: Callable[..., Any]) -> None:
    place = support_cases()
    opened = place.opened(place.walk())
    found = find_defects(opened)

    assert found.claim.name == "complete_aggregate"
    assert (found.claim.evaluated_by, found.claim.receipt_id) == ("engine", opened.receipt_id)
    assert found.statement.startswith("1,200 support cases were compared by their words: 606 fall")
    assert len(found.defects) == 6
    behind = {case for theme in found.defects for case in theme.cases}
    known = {f"case-{n}" for n in range(1, 1_201) if defect_of(n) is not None}
    assert behind == known
    assert find_defects(opened) == found


def test_tables_carry_the_cases_the_claim_and_quality_apart(
    support_cases: Callable[..., Any],
) -> None:
    """No row travels without what it rests on; a second run replaces its generation only."""
    place = support_cases(300)
    nights = [place.walk(), place.walk()]
    found = [run_defects(place.opened(night), place.workspace) for night in (*nights, nights[0])]
    root = place.workspace.project.lake
    themes, quality = (
        pl.read_delta(f"{root}/{LOCATION}"),
        pl.read_delta(f"{root}/{QUALITY_LOCATION}"),
    )

    assert themes.height == sum(len(each.rows) for each in found[1:])
    assert sorted(quality["scan_generation"]) == sorted(nights)
    mine = themes.filter(pl.col("scan_generation") == nights[0])
    assert mine["claim_id"].unique().to_list() == [found[2].claim.claim_id]
    assert mine.select(pl.col("case_ids").list.len() == pl.col("cases")).to_series().all()
    (row,) = quality.filter(pl.col("scan_generation") == nights[0]).to_dicts()
    assert row["in_themes"] + row["left_out"] == row["cases"] == 300
    assert len(row["left_out_ids"]) == row["left_out"]
    assert "coverage_status" not in row
    assert row["receipt_id"] == found[2].claim.receipt_id


def test_cases_left_out_change_quality_and_not_the_claim(
    support_cases: Callable[..., Any],
) -> None:
    """Four cases are too few for any theme: all are left out, and all were inspected."""
    place = support_cases(4)
    found = find_defects(place.opened(place.walk()))

    assert found.claim.name == "complete_aggregate"
    assert (found.quality["left_out"], found.quality["themes"], found.rows) == (4, 0, ())
    assert "4 into none" in found.statement


def test_failed_generation_is_not_analysed_by_a_direct_call(
    support_cases: Callable[..., Any],
) -> None:
    place = support_cases(300, broken=True)
    night = place.walk()

    with pytest.raises(GateClosedError, match="coverage is failed"):
        run_defects(place.opened(night), place.workspace)


def test_missing_extra_names_itself(
    support_cases: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = support_cases(4)
    opened = place.opened(place.walk())
    for name in [each for each in sys.modules if each.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing("sklearn"), *sys.meta_path])

    with pytest.raises(ConfigurationError, match=r"pip install 'scan-pipeline\[model\]'"):
        find_defects(opened)


class Missing:
    """An importer that finds one package nowhere."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
