"""The generation behind a question: opened by its receipt, each time anew."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import polars as pl

from scan_pipeline.agents.answers import Ground
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.queries import Query
from scan_pipeline.core.errors import ContractError, EvidenceError, GateClosedError
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.reading import Collection, observed_at
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection

T = TypeVar("T")


@record
class Grounded:
    """An opened generation.

    Attributes:
        frame: its records, columns as staged.
        ground: what answers from it stand on.
    """

    frame: pl.LazyFrame
    ground: Ground


def open_newest(collection: Collection, query: Query, *, view: str, now: datetime) -> Grounded:
    """Open the newest generation that a question may be asked of.

    Raises:
        ReaderError: none is proven as far as the question wants; says why.
    """

    def whole() -> Grounded:
        opened = collection.latest(at_least=query.at_least)
        standing = collection.standing(at_least=query.at_least)
        newer = standing.newer[-1] if standing.newer else None
        return _grounded(opened, view=view, newer=newer, now=now)

    if query.accept is None:
        return _or_failure(whole)
    accept = query.accept
    return _or_failure(lambda: _newest_part(collection, accept, view=view, now=now))


def open_again(
    collection: Collection,
    query: Query,
    *,
    generation: str,
    receipt_id: str,
    view: str,
    now: datetime,
) -> Grounded:
    """Open the generation of a handle again.

    Raises:
        ReaderError: its receipt fell, was superseded, or does not open it any more.
    """

    def same() -> Grounded:
        if query.accept is None:
            opened = collection.generation(generation, at_least=query.at_least)
        else:
            opened = collection.partial(generation, accept=query.accept)
        if opened.receipt_id != receipt_id:
            raise ReaderError(
                "restart",
                "receipt_changed",
                f"{generation} has another receipt than when the query was opened; open it again",
            )
        newer = newer_than(collection, generation, query)
        told = None if newer is None else (newer, "a newer generation was accepted")
        return _grounded(opened, view=view, newer=told, now=now)

    return _or_failure(same)


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


def _newest_part(
    collection: Collection, accept: ConclusionScope, *, view: str, now: datetime
) -> Grounded:
    return _grounded(collection.newest_part(accept=accept), view=view, newer=None, now=now)


def _grounded(
    opened: VerifiedCollection | PartialCollection,
    *,
    view: str,
    newer: tuple[str, str] | None,
    now: datetime,
) -> Grounded:
    receipt = opened.receipt
    read_at = observed_at(receipt)
    part = isinstance(opened, PartialCollection)
    return Grounded(
        frame=opened.labelled_frame() if part else opened.frame(),
        ground=Ground(
            scan=receipt.scan,
            scan_generation=receipt.scan_generation,
            receipt_id=opened.receipt_id,
            coverage_status=receipt.coverage_status,
            conclusion_scope=receipt.conclusion_scope,
            snapshot_at=read_at.isoformat(),
            age_seconds=max(0, round((now - read_at).total_seconds())),
            newer=None if newer is None else f"newer generation {newer[0]}: {newer[1]}",
            as_visible_to=receipt.authorized_scope,
            view=view,
        ),
    )


def _or_failure(opening: Callable[[], T]) -> T:
    """Turn the errors of opening into what a reader can do about them."""
    try:
        return opening()
    except GateClosedError as error:
        raise ReaderError("stop", "not_proven", str(error)) from error
    except EvidenceError as error:
        raise ReaderError("stop", "evidence_disagrees", str(error)) from error
    except ContractError as error:
        raise ReaderError("stop", "cannot_open", str(error)) from error
