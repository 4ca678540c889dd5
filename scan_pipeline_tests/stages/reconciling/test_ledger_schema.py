"""The ledger's model: every event of a real walk fits it, and what does not is named."""

from typing import Any

import polars as pl
import pytest
from pandera.config import config_context

from scan_pipeline.stages.reconciling.ledger_schema import LedgerFault, ledger_faults, read_ledger


@pytest.fixture
def ledger(bench: Any) -> pl.DataFrame:
    """The ledger of a walk over ten pages."""
    walked = bench.walk()
    store = walked.workspace.store("customers", walked.generation)
    return read_ledger(store.pages(), walked.generation)


def test_walk_fits_the_model(ledger: pl.DataFrame) -> None:
    """Open, ten pages, close."""
    assert ledger.height == 12
    assert ledger_faults(ledger) == ()


def test_ledger_holds_neither_bodies_nor_tokens(ledger: pl.DataFrame) -> None:
    """What a failure case may show is not confidential."""
    assert not {"body", "cursor_in", "cursor_out"} & {*ledger.columns}


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("chain", "beef", "str_matches"),
        ("event", "paused", "isin"),
        ("page", 0, "greater_than_or_equal_to(1)"),
        ("attempts", 0, "greater_than_or_equal_to(1)"),
        ("scan_generation", "yesterday", "str_matches"),
        ("facts", "[]", "str_startswith"),
    ],
)
def test_value_out_of_form_is_named_with_its_column(
    ledger: pl.DataFrame, column: str, value: Any, told: str
) -> None:
    """One row of the ledger is edited."""
    fifth = pl.col("seq") == 5
    kind = ledger.schema[column]
    edited = ledger.with_columns(
        pl.when(fifth).then(pl.lit(value, dtype=kind)).otherwise(pl.col(column)).alias(column)
    )
    faults = ledger_faults(edited)

    assert any(each.column == column and told in each.check and each.rows == 1 for each in faults)


@pytest.mark.parametrize("column", ["page", "returned"])
def test_page_without_its_number_is_named(ledger: pl.DataFrame, column: str) -> None:
    """A page event has an ordinal and a count, and no other event has."""
    kind = ledger.schema[column]
    lost = ledger.with_columns(
        pl.when(pl.col("seq") == 5)
        .then(pl.lit(None, dtype=kind))
        .otherwise(pl.col(column))
        .alias(column)
    )

    assert ledger_faults(lost) == (
        LedgerFault(check="only_pages_have_ordinal_and_count", column=None, rows=1),
    )


def test_answer_before_its_request_is_named(ledger: pl.DataFrame) -> None:
    """A clock that ran backwards, or an edited row."""
    turned = ledger.with_columns(
        pl.when(pl.col("event") == "page")
        .then(pl.col("received_at") + pl.duration(hours=1))
        .otherwise(pl.col("requested_at"))
        .alias("requested_at")
    )

    assert ledger_faults(turned) == (
        LedgerFault(check="answer_not_before_request", column=None, rows=10),
    )


def test_column_that_is_not_the_ledgers_is_named(ledger: pl.DataFrame) -> None:
    """Nothing rides along."""
    faults = ledger_faults(ledger.with_columns(pl.lit(1).alias("extra")))

    assert [each.check for each in faults] == ["column_in_schema"]


def test_empty_ledger_is_a_fault(ledger: pl.DataFrame) -> None:
    """Every check of Pandera passes on no rows."""
    assert ledger_faults(ledger.head(0)) == (LedgerFault(check="has_rows", column=None, rows=0),)


def test_switching_pandera_off_does_not_switch_this_off(ledger: pl.DataFrame) -> None:
    """What surrounds a check may be lax for development; evidence is checked whatever it says."""
    with config_context(validation_enabled=False):
        faults = ledger_faults(ledger.with_columns(chain=pl.lit("beef")))

    assert faults
