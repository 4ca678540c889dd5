"""Files of ours that only their owner reads, and that are not begun anew in silence."""

import pytest

from scan_pipeline.agents.failures import LedgerError
from scan_pipeline.agents.ledger import Ledger
from scan_pipeline.agents.proposals import Proposals
from scan_pipeline.core.errors import ConfigurationError


@pytest.mark.parametrize(
    ("opened", "use"),
    [
        (Ledger, lambda kept: kept.handle("rh_1")),
        (Ledger, lambda kept: kept.runs.spent("ana", now=1.0, run_seconds=60)),
        (Proposals, lambda kept: kept.all()),
    ],
)
def test_file_that_is_lost_or_damaged_is_told_and_not_begun_anew(tmp_path, opened, use):
    """An empty one would begin budgets anew, and let what was done be done again."""
    path = tmp_path / "agents" / "kept.sqlite"
    kept = opened(path)
    use(kept)

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_bytes(b"no database at all" * 400)
    with pytest.raises(LedgerError, match="not a database"):
        use(kept)
    path.unlink()
    with pytest.raises(LedgerError, match="unable to open"):
        use(kept)
    assert not path.exists()


def test_folder_that_cannot_be_made_is_told_with_what_was_expected(tmp_path):
    (tmp_path / "agents").write_text("a file")

    with pytest.raises(ConfigurationError, match="expected a folder"):
        Ledger(tmp_path / "agents" / "ledger.sqlite")
