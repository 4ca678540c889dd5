"""Names of columns: which a record's field may have, and which are ours."""

from typing import Final

GENERATION: Final = "scan_generation"
"""The column that every table is partitioned by."""


def is_column_name(name: str) -> bool:
    """Say whether a column can have this name; Delta cuts it at a NUL without a word."""
    return "\x00" not in name


def same_column(name: str) -> str:
    """Return what is equal for names that are one to Delta, which takes no notice of case."""
    return name.lower()


def is_ours(name: str) -> bool:
    """Say whether a column's name is kept for us: `_page` and its like, and the generation's."""
    return name.startswith("_") or same_column(name) == GENERATION
