"""What the documentation takes from the code is what the code says today."""

from pathlib import Path

import pytest

from scan_pipeline_tests.docs.generated import FILES, ROOT


@pytest.mark.parametrize("path", FILES, ids=lambda each: str(each.relative_to(ROOT)))
def test_generated_file_is_current(path: Path) -> None:
    """Else: python -m scan_pipeline_tests.docs.generated."""
    assert path.read_text(encoding="utf-8") == FILES[path]()
