"""`read`: the records of one generation, as far as its receipt opens them."""

from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

import click

from scan_pipeline.cli.ages import age_word, max_age_option
from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import json_option, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.vocabulary import CONCLUSION_SCOPES, ConclusionScope

if TYPE_CHECKING:
    from scan_pipeline.stages.reading import Collection
    from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection

Wish = Literal["verified", "corroborated"]

TABLE_LIMIT = 20
"""Rows of a table where no limit is given; CSV and JSON give all."""


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@click.option("--at-least", type=click.Choice(get_args(Wish)), help="The whole, proven so far.")
@click.option(
    "--accept",
    type=click.Choice(CONCLUSION_SCOPES),
    help="Be content with this scope; every row then says what it is.",
)
@click.option(
    "--receipt",
    "receipt_id",
    metavar="ID",
    help="Read what this receipt opened, also where it is superseded; every row then says so.",
)
@max_age_option
@click.option("--limit", type=click.IntRange(min=0), help="Give so many records at most.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "json")),
    default="table",
    show_default=True,
    help="How records are written.",
)
@json_option
@click.pass_obj
def read(
    settings: Settings,
    *,
    scan: str,
    generation: str | None,
    at_least: Wish | None,
    accept: ConclusionScope | None,
    receipt_id: str | None,
    max_age: timedelta | None,
    limit: int | None,
    form: Literal["table", "csv", "json"],
    as_json: bool,
) -> ExitCode:
    """Read the records of GENERATION, else of the newest that is proven whole.

    Of a scan that follows changes in rounds, read what its rounds come to.

    Exit 1, with the reason, where no receipt opens as much as was asked for.
    """
    from scan_pipeline.cli.records import write_records
    from scan_pipeline.stages.readers.judged_under import judged_under
    from scan_pipeline.stages.reading import Collection
    from scan_pipeline.stages.unlock import PartialCollection, amended

    if at_least is not None and accept is not None:
        raise click.UsageError("--at-least reads the whole, --accept a part: give one of them")
    form = "json" if as_json else form
    workspace = settings.workspace()
    contract = settings.contract(scan, generation, workspace=workspace)
    collection = Collection(contract, workspace=workspace, max_age=max_age)
    if contract.contract.mode == "sync" and generation is None and receipt_id is None:
        return _read_current(collection, accept=accept, form=form, limit=limit)
    wish: Wish = at_least or "verified"
    opened = _opened(collection, generation, wish, accept=accept, receipt_id=receipt_id)
    labelled = isinstance(opened, PartialCollection)
    frame = opened.labelled_frame() if labelled else opened.frame()
    say(opened.warning if labelled else opened.word())
    say(age_word(collection, opened.receipt, at_least=wish))
    judged = judged_under(opened.receipt, contract)
    if (word := judged.word()) is not None:
        say(word)
    if limit is None and form == "table":
        limit = TABLE_LIMIT
    heading = {
        "statement": amended(opened.receipt.statement, opened.redactions),
        "judged_under": judged.which,
        "superseded_by": opened.superseded_by if labelled else None,
    }
    given, total = write_records(
        frame, opened.receipt, opened.receipt_id, form=form, limit=limit, heading=heading
    )
    say(f"{given:,} of {total:,} records; receipt {opened.receipt_id}")
    return ExitCode.ACCEPTED


def _read_current(
    collection: "Collection",
    *,
    accept: ConclusionScope | None,
    form: Literal["table", "csv", "json"],
    limit: int | None,
) -> ExitCode:
    """Read what the rounds of a scan come to."""
    from scan_pipeline.cli.records import write_records

    opened = collection.current(accept=accept)
    word = opened.word()
    say(word)
    say(opened.standing.word())
    heading = {
        "coverage_status": opened.worth.status,
        "conclusion_scope": opened.worth.scope,
        "statement": word,
        "rests_on": list(opened.receipt_ids),
    }
    if limit is None and form == "table":
        limit = TABLE_LIMIT
    given, total = write_records(
        opened.frame(), opened.receipt, opened.receipt_id, form=form, limit=limit, heading=heading
    )
    say(f"{given:,} of {total:,} records; last receipt {opened.receipt_id}")
    return ExitCode.ACCEPTED


def _opened(
    collection: "Collection",
    generation: str | None,
    wish: Wish,
    *,
    accept: ConclusionScope | None,
    receipt_id: str | None,
) -> "VerifiedCollection | PartialCollection":
    if receipt_id is not None:
        stored = collection.by_id(receipt_id)
        if generation not in (None, stored.receipt.scan_generation):
            raise click.UsageError(f"that receipt is of {stored.receipt.scan_generation}")
        if collection.is_superseded(stored):
            return collection.superseded(receipt_id, accept=accept or "observed_pages_only")
        generation = stored.receipt.scan_generation
    if accept is not None:
        chosen = generation or collection.newest().receipt.scan_generation
        return collection.partial(chosen, accept=accept)
    if generation is not None:
        return collection.generation(generation, at_least=wish)
    return collection.latest(at_least=wish)
