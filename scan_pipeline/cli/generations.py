"""`generations`: every attempt of a scan, newest first, and which one is published."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import json_option, print_json, print_table
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.core.receipt import Receipt
    from scan_pipeline.stages.workspace import Workspace
    from scan_pipeline.store.events import Event
    from scan_pipeline.store.receipts import StoredReceipt

HEADINGS = (
    "generation",
    "state",
    "coverage",
    "scope",
    "accepted",
    "records",
    "pages",
    "duration",
    "published",
)


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@json_option
@click.pass_obj
def generations(settings: Settings, *, scan: str, as_json: bool) -> ExitCode:
    """List the generations of a scan, newest first: open, closed or sealed by a receipt."""
    from scan_pipeline.cli.account import words
    from scan_pipeline.stages.trial_place import trials_of

    name, workspace = settings.name(scan), settings.workspace()
    rows = history(name, workspace=workspace)
    trials = history(name, workspace=workspace.at(trials_of(workspace.project)))
    rows += [{**row, "trial": True} for row in trials]
    if as_json:
        print_json(rows)
        return ExitCode.ACCEPTED
    print_table(
        HEADINGS,
        [
            (
                row["generation"],
                "trial" if row["trial"] else row["state"],
                row["coverage_status"],
                row["conclusion_scope"] and words(row["conclusion_scope"]),
                row["accepted"],
                row["records"],
                row["pages"],
                None if row["duration_seconds"] is None else f"{row['duration_seconds']:.1f} s",
                "published" if row["published"] else _judged_again(row),
            )
            for row in rows
        ],
        title=f"{len(rows) - len(trials):,} generations of {name}{_and_trials(len(trials))}",
    )
    return ExitCode.ACCEPTED


def _judged_again(row: dict[str, Any]) -> str:
    return f"superseded by {row['superseded_by']}" if row["superseded_by"] else ""


def _and_trials(number: int) -> str:
    return f", and {number:,} trials, which are none of them" if number else ""


def history(scan: str, *, workspace: "Workspace") -> list[dict[str, Any]]:
    """Return what became of each generation, newest first, as plain values."""
    from scan_pipeline.stages.publish import published_generation
    from scan_pipeline.stages.shelf import Shelf
    from scan_pipeline.store.receipts import Untrusted, generation_order

    receipts, shelf = workspace.receipts(scan), Shelf(scan, workspace=workspace)
    committed = set(receipts.committed_generations())
    sealed = committed | set(receipts.generations())
    walked = workspace.store(scan, "20000101T000000Z").pages().generations()
    published = published_generation(scan, workspace=workspace)
    rows = list[dict[str, Any]]()
    for generation in sorted({*sealed, *walked}, key=generation_order, reverse=True):
        if generation not in sealed:
            row = _unsealed(workspace.store(scan, generation).events())
        else:
            found = receipts.look(generation, trust=workspace.trust)
            if isinstance(found, Untrusted):
                state = "sealed" if generation in committed else "no_receipt"
                row = {**_NOTHING, "state": state, "problem": found.reason}
            else:
                row = _sealed(found.receipt, by=shelf.superseded_by(found))
        is_published = generation == published
        rows.append({"generation": generation, **row, "published": is_published, "trial": False})
    return rows


_NOTHING: dict[str, Any] = {
    "state": None,
    "traversal": None,
    "coverage_status": None,
    "conclusion_scope": None,
    "accepted": None,
    "superseded_by": None,
    "records": None,
    "pages": None,
    "began_at": None,
    "duration_seconds": None,
}


def _sealed(receipt: "Receipt", *, by: "StoredReceipt | None") -> dict[str, Any]:
    began, ended = receipt.observation_started_at, receipt.completed_at
    spent = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return {
        "state": "sealed",
        "traversal": receipt.traversal,
        "coverage_status": receipt.coverage_status,
        "conclusion_scope": receipt.conclusion_scope,
        "accepted": receipt.accepted,
        "superseded_by": by and by.receipt.scan_generation,
        "records": receipt.records_observed,
        "pages": receipt.pages_observed,
        "began_at": began,
        "duration_seconds": spent.total_seconds(),
    }


def _unsealed(events: Sequence["Event"]) -> dict[str, Any]:
    """Sum up a generation without a receipt from its events."""
    closed = events[-1].event == "close"
    pages = [each for each in events if each.event == "page"]
    spent = events[-1].received_at - events[0].received_at
    return {
        **_NOTHING,
        "state": "closed" if closed else "open",
        "traversal": events[-1].facts["traversal"] if closed else None,
        "records": sum(each.returned or 0 for each in pages),
        "pages": len(pages),
        "began_at": events[0].received_at.isoformat().replace("+00:00", "Z"),
        "duration_seconds": spent.total_seconds(),
    }
