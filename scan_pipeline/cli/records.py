"""Records on their way out: exact values, as a table, CSV or JSON."""

import csv
import sys
from collections.abc import Mapping
from typing import Any, Literal

import click
import msgspec
import polars as pl

from scan_pipeline.cli.output import cell, console, print_table, say
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.publish import HIDDEN
from scan_pipeline.stages.readers.exact_texts import EXACT_JSON, exact_text
from scan_pipeline.stages.unlock import LABELS

SHOWN_CHARACTERS = 48
"""Characters of a cell of a table; CSV and JSON give values whole."""

BETWEEN = 3
"""Columns of a line between two of the table's, about."""


def write_records(
    frame: pl.LazyFrame,
    receipt: Receipt,
    receipt_id: str,
    *,
    form: Literal["table", "csv", "json"],
    limit: int | None,
    heading: Mapping[str, Any],
) -> tuple[int, int]:
    """Write records to stdout; return how many were written, and of how many.

    Args:
        frame: the records of one generation.
        receipt: what opened them.
        receipt_id: its id.
        form: how they are written.
        limit: how many at most; None for all.
        heading: what JSON says of the records beside the receipt's own words.
    """
    kept = frame.drop(HIDDEN, strict=False)
    total = int(frame.select(pl.len()).collect().item())
    rows = (kept if limit is None else kept.head(limit)).collect()
    match form:
        case "table":
            _print_table(rows)
        case "csv":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(rows.columns)
            writer.writerows([exact_text(value) for value in row] for row in rows.iter_rows())
        case "json":
            told = _heading(receipt, receipt_id, given=rows.height, total=total)
            _write_json(rows, {**told, **heading})
    return rows.height, total


def _print_table(rows: pl.DataFrame) -> None:
    """Give the columns that a line holds, the labels always, and say which are not shown."""
    cells = [[_short(value) for value in row] for row in rows.iter_rows()]
    widths = [
        max(map(len, [name, *(line[n] for line in cells)])) + BETWEEN
        for n, name in enumerate(rows.columns)
    ]
    kept = [n for n, name in enumerate(rows.columns) if name in LABELS]
    room = console(sys.stdout).width - sum(widths[n] for n in kept)
    for number, name in enumerate(rows.columns):
        if name in LABELS:
            continue
        room -= widths[number]
        if room < 0 and len(kept) > sum(each in LABELS for each in rows.columns):
            break
        kept.append(number)
    kept.sort()
    names = [rows.columns[n] for n in kept]
    print_table(names, ([line[n] for n in kept] for line in cells), wide=True)
    hidden = [name for name in rows.columns if name not in names]
    if hidden:
        say(
            f"{len(hidden)} of {len(rows.columns)} columns are not shown: {', '.join(hidden)}; "
            "--format csv or json gives all"
        )


def _heading(receipt: Receipt, receipt_id: str, *, given: int, total: int) -> dict[str, Any]:
    return {
        "scan": receipt.scan,
        "scan_generation": receipt.scan_generation,
        "receipt_id": receipt_id,
        "coverage_status": receipt.coverage_status,
        "conclusion_scope": receipt.conclusion_scope,
        "statement": receipt.statement,
        "given": given,
        "total": total,
    }


def _write_json(rows: pl.DataFrame, heading: Mapping[str, Any]) -> None:
    """Write one document, a record a line, without holding its text in memory."""
    around = msgspec.json.encode(heading).decode()
    click.echo(f'{around[:-1]},"records":[', nl=False)
    for number, row in enumerate(rows.iter_rows(named=True)):
        click.echo(f"{',' if number else ''}\n{EXACT_JSON.encode(row).decode()}", nl=False)
    click.echo("\n]}")


def _short(value: Any) -> str:
    text = cell(None if value is None else exact_text(value)).replace("\n", "\\x0a")
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
