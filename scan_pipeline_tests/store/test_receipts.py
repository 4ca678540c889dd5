"""A receipt that cannot be read is named; the others are read."""

import os
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.store.receipts import Untrusted

NOT_GIVEN = Path("/proc/self/mem")
"""A file that opens and whose first bytes the kernel gives to nobody: an error of the disk."""


def make_unreadable(file: Path, *, how: str) -> str:
    """Let a file be there and not be read; return the word that says why."""
    if how == "mode":
        if os.geteuid() == 0:
            pytest.skip("root reads every mode")
        file.chmod(0)
        return "Permission denied"
    if not NOT_GIVEN.exists():
        pytest.skip("this system has no such file")
    file.unlink()
    file.symlink_to(NOT_GIVEN)
    return "Input/output error"


@pytest.mark.parametrize("how", ["mode", "disk"])
def test_receipt_that_cannot_be_read_is_named_and_the_others_are_read(bench: Any, how: str) -> None:
    """The newest file is spoilt: readers open the night before, and say why."""
    walked = bench.walk()
    night = run_scan(walked.scan, workspace=walked.workspace)
    first = walked.night.stored.receipt.scan_generation
    newest = night.stored.receipt.scan_generation
    file = Path(walked.workspace.lake.receipt_path(walked.scan.name, newest))
    why = make_unreadable(file, how=how)

    looked = list(Shelf(walked.scan.name, workspace=walked.workspace).newest_first())
    standing = Collection(walked.scan, workspace=walked.workspace).standing()

    assert isinstance(looked[0], Untrusted)
    assert looked[0].generation == newest
    assert why in looked[0].reason
    assert str(file) in looked[0].reason
    assert standing.opened == first
    with pytest.raises(EvidenceError, match="cannot be read"):
        walked.workspace.receipts(walked.scan.name).read(newest, trust=walked.workspace.trust)
