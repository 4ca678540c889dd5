"""The checks of a Pandera model, held against rows that are typed already."""

from collections.abc import Iterator, Set
from functools import lru_cache

import polars as pl
import pyarrow as pa
from pandera.api.polars.container import DataFrameSchema
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors
from pandera.polars import DataFrameModel

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.stages.records.schema import ResolvedSchema


@record
class CheckFailed:
    """A row that a check refuses.

    Attributes:
        row: its row in the batch, from 0.
        column: the checked column.
        check: the check, as the model writes it.
    """

    row: int
    column: str
    check: str


class ModelChecks:
    """What a model asks of rows beyond their types.

    The parser holds every type, and which column may be null or missing; that keys are unique is
    held against all records, and nothing else may be asked to be. What is left are checks: only
    the columns that have some are looked at, and none where no column has.

    Args:
        schema: the resolved record schema.
    """

    def __init__(self, schema: ResolvedSchema) -> None:
        self._model = (
            None if schema.model is None else _with_checks_alone(schema.model, schema.optional)
        )

    def failed(self, columns: pa.Table, *, refused: Set[int]) -> Iterator[CheckFailed]:
        """Yield each row that a check refuses.

        The depth is set here, since an environment variable may lower it, and the frame is eager,
        since a lazy one is checked for its columns only (pandera 0.35).

        Args:
            columns: the parsed rows.
            refused: rows that the parser refused; they are not looked at.

        Raises:
            ContractError: a check refuses the frame as a whole.
        """
        if self._model is None or not columns.num_rows:
            return
        frame, rows = pl.DataFrame(columns.select(list(self._model.columns))), None
        if refused:
            frame = frame.with_row_index("_row").filter(~pl.col("_row").is_in(list(refused)))
            rows, frame = frame["_row"].to_list(), frame.drop("_row")
        with config_context(
            validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA
        ):
            try:
                self._model.validate(frame, lazy=True)
            except SchemaErrors as errors:
                for case in errors.failure_cases.iter_rows(named=True):
                    row = case["index"]
                    if row is None:
                        raise ContractError(
                            f"record_schema refuses a frame as a whole ({case['check']}); expected "
                            "checks that name rows: uniqueness is held against all records, by key"
                        ) from errors
                    yield CheckFailed(
                        row=row if rows is None else rows[row],
                        column=case["column"],
                        check=case["check"],
                    )


@lru_cache(maxsize=32)  # Pandera copies the whole schema for each change
def _with_checks_alone(
    model: type[DataFrameModel], optional: frozenset[str]
) -> DataFrameSchema | None:
    """Return a model's schema of checked columns; a column that may be missing is null then."""
    declared = model.to_schema()
    laxer = {
        name: {"unique": False, "nullable": column.nullable or name in optional}
        for name, column in declared.columns.items()
        if column.unique or name in optional
    }
    laxly = declared.update_columns(laxer)
    laxly.unique = None
    if laxly.checks or laxly.parsers:
        return laxly  # of the whole frame: they see every column
    unchecked = [
        name for name, column in laxly.columns.items() if not (column.checks or column.parsers)
    ]
    return laxly.remove_columns(unchecked) if len(unchecked) < len(laxly.columns) else None
