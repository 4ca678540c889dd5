"""The report as plain Markdown, for a review packet: no HTML, no pictures, nothing that loads.

Texts from outside stand in code spans, where neither a renderer nor a forge makes anything of them;
ours are escaped. Tables are GitHub's (https://github.github.com/gfm/, tables and code spans, read
2026-11-30), which is what packets are most often pasted into.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from scan_pipeline.stages.reporting.document import (
    Block,
    Cell,
    Command,
    Digest,
    Fact,
    Facts,
    Figure,
    Note,
    Phrase,
    Report,
    Section,
    Table,
    Told,
)
from scan_pipeline.stages.reporting.wording import DASH, visible

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()<>#+!|~&])")


def to_markdown(report: Report) -> str:
    """Return the report as Markdown, which ends with a line end."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_ours(report.title)}: {_ours(report.verdict)}"
    yield ""
    yield f"> {markdown(report.statement)}"
    yield ""
    yield from _facts(report.glance)
    for section in report.sections:
        yield from _section(section)
    yield "---"
    yield ""
    yield markdown(report.foot)


def _section(section: Section) -> Iterator[str]:
    yield f"## {_ours(section.question)}"
    yield ""
    yield (
        f"**{markdown(section.answer)}**"
        if isinstance(section.answer, str)
        else markdown(section.answer)
    )
    yield ""
    for block in section.blocks:
        yield from _block(block)


def block_markdown(block: Block) -> str:
    """Return one block of a report, alone."""
    return "\n".join(_block(block))


def _block(block: Block) -> Iterator[str]:
    match block:
        case Facts():
            yield from _facts(block.facts)
        case Note():
            yield markdown(block.text)
            yield ""
        case Table():
            yield from _table(block)
        case Figure():
            yield f"{_ours(block.caption)}. {_ours(block.alternative)}"
            yield ""
            yield from _table(block.table)


def _facts(facts: Sequence[Fact]) -> Iterator[str]:
    for each in facts:
        values = "; ".join(markdown(value) for value in each.values) or DASH
        yield f"- **{_ours(each.name)}**: {values}"
    yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"{_ours(table.caption)}:"
    yield ""
    yield _row([_ours(each.name) for each in table.columns])
    yield _row(["---:" if each.numeric else "---" for each in table.columns])
    for row in table.rows:
        yield _row([markdown(each, in_table=True) for each in row.cells])
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown(cell: Cell, *, in_table: bool = False) -> str:
    """Return a cell as Markdown on one line.

    Args:
        cell: the cell.
        in_table: whether it stands in a table, where a bar has to be escaped in code too.
    """
    match cell:
        case str():
            return _ours(cell)
        case Phrase():
            return "".join(
                _ours(each) if isinstance(each, str) else _code(each.text, in_table=in_table)
                for each in cell.parts
            )
        case Told() | Digest() | Command():
            return _code(cell.text, in_table=in_table)


def _ours(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text))


def _code(text: str, *, in_table: bool) -> str:
    """Return a code span; its fence is longer than any run of backticks within."""
    text = visible(text)
    if not text.strip():
        return "(empty)" if not text else "(blank)"
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    if in_table:
        text = text.replace("|", "\\|")
    return f"{fence}{room}{text}{room}{fence}"
