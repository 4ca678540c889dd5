"""The generation behind a question: opened by its receipt, each time anew."""

from datetime import datetime

import polars as pl

from scan_pipeline.agents.access import Access
from scan_pipeline.agents.answers import Ground
from scan_pipeline.agents.failures import ReaderError, Remedy
from scan_pipeline.agents.queries import Query
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.value import record
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.standing import Standing, is_young_enough, observed_at
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection, why_closed


@record
class Grounded:
    """An opened generation.

    Attributes:
        frame: its records, columns as staged.
        delivered: the same with the repeats of records that were delivered again.
        ground: what answers from it stand on.
        erased: records of the generation that were erased since; whether a view would show them,
            nobody can say any more.
        redacted_at: when that was done last; None where it was not.
    """

    frame: pl.LazyFrame
    delivered: pl.LazyFrame
    ground: Ground
    erased: int = 0
    redacted_at: datetime | None = None


def open_newest(collection: Collection, query: Query, *, access: Access, now: datetime) -> Grounded:
    """Open the newest generation that a question may be asked of.

    Raises:
        ReaderError: none is proven as far as the question wants, or it is older than the policy
            allows; says why to who sees everything.
    """
    try:
        if query.accept is None:
            opened = collection.latest(at_least=query.at_least)
        else:
            opened = collection.newest_part(accept=query.accept)
    except GateClosedError as error:
        told = "no generation is proven as far as this question wants; accept may name less"
        raise _told("stop", "not_proven", told, error, access=access) from error
    return _grounded(collection, opened, access=access, now=now)


def open_again(
    collection: Collection,
    query: Query,
    *,
    generation: str,
    receipt_id: str,
    access: Access,
    now: datetime,
) -> Grounded:
    """Open the generation of a handle again.

    Raises:
        ReaderError: its receipt fell, was superseded, does not open it any more, or it is older
            than the policy allows by now.
    """
    try:
        if query.accept is None:
            opened = collection.generation(generation, at_least=query.at_least)
        else:
            opened = collection.partial(generation, accept=query.accept)
    except GateClosedError as error:
        refuse_superseded(collection, generation)
        told = f"the receipt of {generation} does not open it any more; open the query again"
        raise _told("restart", "receipt_fell", told, error, access=access) from error
    if opened.receipt_id != receipt_id:
        raise ReaderError(
            "restart",
            "receipt_changed",
            f"{generation} has another receipt than when the query was opened; open it again",
        )
    return _grounded(collection, opened, access=access, now=now)


def refuse_superseded(collection: Collection, generation: str) -> None:
    """Refuse a generation whose pages were judged again since.

    Raises:
        ReaderError: they were.
    """
    try:
        superseded = collection.is_superseded(collection.receipt(generation))
    except GateClosedError:
        return
    if superseded:
        raise ReaderError(
            "restart",
            "receipt_superseded",
            f"the pages of {generation} were judged again, and another receipt stands for them; "
            "open the query again",
        )


def newer_than(collection: Collection, generation: str, query: Query) -> str | None:
    """Return the newer generation that a question opened now would stand on, or None."""
    try:
        if query.accept is None:
            newest = collection.standing(at_least=query.at_least).opened
        else:
            newest = collection.newest_part(accept=query.accept).receipt.scan_generation
    except GateClosedError:
        return None
    return None if newest == generation else newest


def _newer(
    collection: Collection, opened: VerifiedCollection | PartialCollection, access: Access
) -> tuple[str, str] | None:
    """Return the newest generation after an opened one, and what became of it.

    Why a generation was not accepted may name keys and counts of rows that a view keeps back.
    """
    newest = collection.newest().receipt
    if newest.scan_generation == opened.receipt.scan_generation:
        return None
    if newest.accepted:
        return newest.scan_generation, "was accepted"
    why = f": {why_closed(newest)}" if access.sees_everything else ""
    return newest.scan_generation, f"was not accepted{why}"


def _grounded(
    collection: Collection,
    opened: VerifiedCollection | PartialCollection,
    *,
    access: Access,
    now: datetime,
) -> Grounded:
    receipt = opened.receipt
    if receipt.mode == "sync":
        # Which of its records were removed stands in a column of ours, which no view shows.
        raise ReaderError(
            "stop",
            "round_of_changes",
            f"{receipt.scan} is followed in rounds, and a round holds changes and removals, no "
            "collection; what its rounds come to is not read here: `scan-pipeline read` gives it",
        )
    standing = Standing(
        opened=receipt.scan_generation,
        read_at=observed_at(receipt),
        now=now,
        schedule=collection.scan.schedule,
    )
    if access.max_age is not None and not is_young_enough(standing.age, max_age=access.max_age):
        raise ReaderError(
            "stop",
            "too_old",
            f"{standing.plain_word()}; the policy allows at most {access.max_age}. Nobody can "
            "make it younger from here: a new generation has to be accepted",
        )
    newer = _newer(collection, opened, access)
    part = isinstance(opened, PartialCollection)
    return Grounded(
        frame=opened.labelled_frame() if part else opened.frame(),
        delivered=opened.labelled_delivered() if part else opened.delivered(),
        ground=Ground(
            scan=receipt.scan,
            scan_generation=receipt.scan_generation,
            receipt_id=opened.receipt_id,
            coverage_status=receipt.coverage_status,
            conclusion_scope=receipt.conclusion_scope,
            snapshot_at=standing.read_at.isoformat(),
            age_seconds=max(0, round(standing.age.total_seconds())),
            late=standing.late_word(),
            newer=None if newer is None else f"the newer generation {newer[0]} {newer[1]}",
            redacted=_redacted(opened, access),
            as_visible_to=receipt.authorized_scope,
            view=access.view,
        ),
        erased=len(opened.redactions.keys),
        redacted_at=opened.redactions.newest,
    )


def _redacted(opened: VerifiedCollection | PartialCollection, access: Access) -> str | None:
    """Say that records were erased since; how many and when, to who sees everything alone."""
    if not opened.redactions:
        return None
    return opened.redactions.word() if access.sees_everything else "records were redacted since"


def _told(
    remedy: Remedy, code: str, plainly: str, error: GateClosedError, *, access: Access
) -> ReaderError:
    """Return a failure whose reason is given to who sees everything alone."""
    said = str(error) if access.sees_everything else plainly
    return ReaderError(remedy, code, said)
