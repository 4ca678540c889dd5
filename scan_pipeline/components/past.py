"""Runs over the past: they never walk it.

A partition of the past that was never walked is refused: what a source holds today is no account
of what it held then. A generation that is certified is judged again from its stored pages where the
contract judges otherwise by now, as a new generation beside it; where it judges the same, the
stages compute again, compare, and write nothing. No request goes to the source in either case.
"""

from datetime import timedelta
from typing import Final

import dagster as dg

from scan_pipeline.components.generations import add_generation
from scan_pipeline.components.overtaken import is_begun_by_us
from scan_pipeline.components.reporting import report_generation
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.calendar import ticks_after
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import ConfigurationError, ContractError, TamperedError
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.standing import begun_at

A_DAY: Final = timedelta(days=1)


def refuse_the_past(
    opened: ScanResource, generation: str, *, context: dg.AssetExecutionContext
) -> None:
    """Refuse to begin a generation whose time is over, unless its own sensor asks for it.

    By hand it may be begun until the next tick is due, a day without a schedule: a run that was
    dropped is made up for. Schedules and sensors name theirs themselves, and a queue may hold those
    longer.

    Raises:
        ContractError: it was never walked; says what to do instead.
    """
    schedule, moment = opened.scan.schedule, begun_at(generation)
    over = moment + A_DAY if schedule is None else next(ticks_after(schedule, moment))
    if is_begun_by_us(context.run.tags) or opened.workspace.clock() < over:
        return
    raise ContractError(
        f"{opened.scan.name} {generation}: found no walk of that moment; expected one, since the "
        "past cannot be walked: what the source holds now would bear the name of what it held "
        f"then. Take the partition away, and begin one of now: {opened.face.scan}_new_generation"
    )


def restage_where_judged_otherwise(
    opened: ScanResource, generation: str, *, context: dg.AssetExecutionContext
) -> str | None:
    """Judge a certified generation's pages again where the contract judges otherwise by now.

    Returns:
        The generation whose receipt supersedes this one's, now or since an earlier time; None
        where this one stands.

    Raises:
        GateClosedError: it has no receipt.
    """
    scan, workspace, pipeline = opened.scan, opened.workspace, opened.pipeline(generation)
    stored = opened.collection().receipt(generation)
    by = Shelf(scan.name, workspace=workspace).superseded_by(stored)
    if by is not None:
        return by.receipt.scan_generation
    if stored.receipt.scope_digest != scope_digest(scan):
        context.log.info("%s was walked under another scope: it stays as it is", generation)
        return None
    if stored.receipt.judgement_digest == pipeline.digests.judgement:
        return None
    try:
        next(iter(pipeline.store.bodies()), None)
        again = restage(scan, generation, workspace=workspace)
    except (ConfigurationError, ContractError, TamperedError) as error:
        context.log.warning("%s stays as it was judged: %s", generation, error)
        return None
    fresh = again.receipt.scan_generation
    add_generation(opened.face, fresh, instance=context.instance)
    plots = opened.face.settings.plots
    report_generation(opened, fresh, instance=context.instance, plots=plots)
    context.log.info("%s is judged again as %s: %s", generation, fresh, again.receipt.statement)
    return fresh
