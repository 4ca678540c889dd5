"""Words and tables for people, JSON for programs; the answer on stdout, the rest on stderr."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])

PLAIN_WIDTH: Final = 160
"""Width of tables, in columns, where no terminal says its own."""


def json_option(command: F) -> F:
    """Add `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON on stdout.")(
        command
    )


def say(words: str) -> None:
    """Say something beside the answer."""
    click.echo(shown(words), err=True)


def answer(words: str = "") -> None:
    """Give a line of the answer."""
    click.echo(shown(words))


def print_json(value: Any) -> None:
    """Give the answer as JSON, members in the order they were put in."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    wide: bool = False,
) -> None:
    """Give a table of the answer; None is shown as a dash.

    Args:
        headings: of the columns.
        rows: the cells.
        title: a line above it.
        wide: whether lines may be longer than the terminal instead of folding cells.
    """
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=wide)
    for row in rows:
        table.add_row(*(cell(each) for each in row))
    console(sys.stdout, width=100_000 if wide else None).print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Give named facts of the answer, one a line."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, cell(value))
    console(sys.stdout).print(table)


def console(stream: TextIO, *, width: int | None = None) -> "Console":
    """Return a console that shows texts as they are, without markup or highlighting."""
    from rich.console import Console

    terminal = stream.isatty()
    return Console(
        file=stream,
        width=width or (None if terminal else PLAIN_WIDTH),
        markup=False,
        highlight=False,
        emoji=False,
    )


def cell(value: object) -> str:
    """Return a value as people read it in a table."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case _:
            return shown(str(value))


def shown(text: str) -> str:
    """Return text that cannot steer a terminal: what came from a source is not ours to trust."""
    return "".join(
        each if each.isprintable() or each == "\n" else f"\\x{ord(each):02x}" for each in text
    )
