"""The ledger of a walk as a Pandera model: what every row of events must be, bodies aside."""

from typing import Final, get_args

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors

from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import EventKind
from scan_pipeline.store.events import LEDGER, SEALED_COLUMNS
from scan_pipeline.store.tables import Table

HEX_DIGEST: Final = r"^[0-9a-f]{64}$"

COLUMNS: Final = tuple(name for name in LEDGER if name not in SEALED_COLUMNS)
"""What is held against the model: neither bodies nor tokens, which no failure case may show."""


class Ledger(pa.DataFrameModel):
    """The events of one generation, one row each, in any order.

    Order and linkage are the chain's to prove; this model holds each row to its own form: digests
    are SHA-256 in hex, only pages have an ordinal and counts, times do not run backwards.
    """

    scan_generation: str = pa.Field(str_matches=r"^\d{8}T\d{6}Z(\.\d+)?$")
    shard: pl.Int32 = pa.Field(ge=0)
    seq: pl.Int64 = pa.Field(ge=0)
    event: str = pa.Field(isin=list(get_args(EventKind)))
    page: pl.Int64 = pa.Field(ge=1, nullable=True)
    cursor_in_digest: str = pa.Field(str_matches=HEX_DIGEST)
    cursor_out_digest: str = pa.Field(str_matches=HEX_DIGEST)
    end_signal: str = pa.Field(nullable=True)
    returned: pl.Int64 = pa.Field(ge=0, nullable=True)
    facts: str = pa.Field(str_startswith="{")
    facts_digest: str = pa.Field(str_matches=HEX_DIGEST)
    items_digest: str = pa.Field(str_matches=HEX_DIGEST)
    body_digest: str = pa.Field(str_matches=HEX_DIGEST)
    body_bytes: pl.Int64 = pa.Field(ge=0, nullable=True)
    attempts: pl.Int32 = pa.Field(ge=1, nullable=True)
    requested_at: pl.Datetime("us", "UTC") = pa.Field(nullable=True)  # type: ignore[valid-type]
    received_at: pl.Datetime("us", "UTC")  # type: ignore[valid-type]  # Pandera reads the instance
    chain: str = pa.Field(str_matches=HEX_DIGEST)

    class Config(pa.DataFrameModel.Config):
        """Refuse columns that are not the ledger's."""

        strict = True

    @pa.dataframe_check(name="only_pages_have_ordinal_and_count")
    @classmethod
    def _page_facts(cls, data: PolarsData) -> pl.LazyFrame:
        is_page = pl.col("event") == "page"
        told = pl.all_horizontal(
            pl.col(name).is_not_null() == is_page for name in ("page", "returned")
        )
        return data.lazyframe.select(told)

    @pa.dataframe_check(name="first_row_opens")
    @classmethod
    def _opens(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("seq") == 0) == (pl.col("event") == "open"))

    @pa.dataframe_check(name="answer_not_before_request")
    @classmethod
    def _times(cls, data: PolarsData) -> pl.LazyFrame:
        asked = pl.col("requested_at")
        return data.lazyframe.select(asked.is_null() | (pl.col("received_at") >= asked))


@record
class LedgerFault:
    """Rows of a ledger that one check refuses; `column` is None for a check over a whole row."""

    check: str
    column: str | None
    rows: int


def read_ledger(pages: Table, generation: str) -> pl.DataFrame:
    """Return the ledger of a generation as a frame, digests in hex; no body is read.

    Pandera 0.35 panics where it has to show a row with a binary column, hence the hex.
    """
    ledger = pl.DataFrame(pages.read(generation, columns=COLUMNS))
    return ledger.with_columns(pl.col(pl.Binary).bin.encode("hex"))


def ledger_faults(ledger: pl.DataFrame) -> tuple[LedgerFault, ...]:
    """Hold a ledger against its model.

    The frame is eager and the depth is set, since Pandera checks a lazy one for its columns only
    and lets a variable switch checks off; an empty one, which passes every check, is a fault.
    """
    if ledger.is_empty():
        return (LedgerFault(check="has_rows", column=None, rows=0),)
    depth = ValidationDepth.SCHEMA_AND_DATA
    with config_context(validation_enabled=True, validation_depth=depth):
        try:
            Ledger.validate(ledger, lazy=True)
        except SchemaErrors as refused:
            return _faults(refused.failure_cases)
    return ()


def _faults(cases: pl.DataFrame) -> tuple[LedgerFault, ...]:
    counted = cases.group_by("check", "column").len().sort("check", "column")
    return tuple(
        LedgerFault(
            check=str(check), column=None if column == Ledger.__name__ else column, rows=rows
        )
        for check, column, rows in counted.iter_rows()
    )
