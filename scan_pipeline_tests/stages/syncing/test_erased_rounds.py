"""A record erased from a scan of rounds is in none of them, and not in what they come to."""

import re
from pathlib import Path

import pytest

from scan_pipeline.simulator.mutations import Delete, Update
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.erase import erase
from scan_pipeline.stages.maintain import maintain
from scan_pipeline.stages.reading import Collection
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.syncing.rounds import following
from scan_pipeline_tests.stages.test_erase import decoded

NAMES_IT = re.compile(rb"(?<![\w-])customer-7(?![\w-])")


@pytest.mark.long
def test_erased_record_is_in_no_round_and_not_in_the_current_table(bench: Bench) -> None:
    followed = following(bench)
    receipts = [followed.round()]
    for change in (Update(first=7, region="mea"), Delete(first=8)):
        followed.change(change)
        receipts.append(followed.round())
    expected = {key: each for key, each in followed.current.items() if key != "customer-7"}
    lake = Path(followed.workspace.project.lake)

    came = erase(
        followed.scan, ("customer-7",), because="request 9", by=None, workspace=followed.workspace
    )

    assert came.left == ()
    assert [each.records for each in came.erased] == [1, 1]
    assert followed.current == expected
    opened = Collection(followed.scan, workspace=followed.workspace).current()
    assert "; 1 record redacted on" in opened.word()
    files = [each for each in lake.rglob("*") if each.is_file()]
    assert not [f for f in files if any(map(NAMES_IT.search, decoded(f)))]
    for receipt in receipts:
        report = Audit("customers", receipt.scan_generation, workspace=followed.workspace).run()
        assert report.disagreements == ()
    followed.change(Delete(first=9))
    after = followed.round()  # its checkpoint went with the tokens: a baseline, or the next round
    assert after.accepted
    maintain(followed.scan, workspace=followed.workspace)
    assert Audit("customers", after.scan_generation, workspace=followed.workspace).run().agrees
