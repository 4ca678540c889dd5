"""The record schema of the benchmark's items."""

import pandera.polars as pa
import polars as pl


class Item(pa.DataFrameModel):
    """One of a million records of about 324 bytes."""

    id: str
    seq: int
    account_id: int
    amount: float
    score: float
    status: str
    name: str
    active: bool
    created_at: str
    updated_at: str
    note: str = pa.Field(nullable=True)
    attrs: pl.Struct({"city": pl.String, "zip": pl.String, "lat": pl.Float64, "lon": pl.Float64})
