"""The record schema of the registry's customers."""

import pandera.polars as pa
import polars as pl


class Customer(pa.DataFrameModel):
    """One customer as the registry sends it. Money is exact, times are UTC."""

    customer_id: str = pa.Field(str_matches=r"^customer-[1-9][0-9]*$")
    tenant: str = pa.Field(isin=["acme", "globex"])
    region: str = pa.Field(isin=["apac", "eu", "latam", "mea", "us"])
    status: str = pa.Field(isin=["active", "suspended", "closed"])
    schema_version: int = pa.Field(in_range={"min_value": 1, "max_value": 3})
    name: str
    email: str
    balance: pl.Decimal(18, 2)  # type: ignore[valid-type]  # Pandera reads the instance
    credit_limit: pl.Decimal(18, 2) = pa.Field(nullable=True)  # type: ignore[valid-type]
    external_id: int
    created_at: pl.Datetime("us", "UTC")  # type: ignore[valid-type]
    updated_at: pl.Datetime("us", "UTC")  # type: ignore[valid-type]
    address: pl.Struct(  # type: ignore[valid-type]
        {"street": pl.String, "city": pl.String, "postcode": pl.String, "country": pl.String}
    )
    notes: str = pa.Field(nullable=True)
    tags: pl.List(pl.String)  # type: ignore[valid-type]
