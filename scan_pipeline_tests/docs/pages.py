"""The pages of the documentation, and the blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


@dataclass(frozen=True)
class Block:
    """A fenced block: its word, its text, and the line it begins on."""

    page: Path
    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page=page, kind=found[1], text=found[2], line=line)
