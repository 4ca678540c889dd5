"""The record schema of the registry's support cases."""

import pandera.polars as pa
import polars as pl


class SupportCase(pa.DataFrameModel):
    """One support case as the registry sends it: free text, and whose it is. Times are UTC."""

    case_id: str = pa.Field(str_matches=r"^case-[1-9][0-9]*$")
    customer_id: str = pa.Field(str_matches=r"^customer-[1-9][0-9]*$")
    tenant: str = pa.Field(isin=["acme", "globex"])
    region: str = pa.Field(isin=["apac", "eu", "latam", "mea", "us"])
    status: str = pa.Field(isin=["open", "pending", "resolved", "closed"])
    schema_version: int
    priority: str = pa.Field(isin=["low", "normal", "high", "urgent"])
    product: str = pa.Field(isin=["api", "billing", "exports", "mobile", "portal"])
    subject: str
    body: str
    created_at: pl.Datetime("us", "UTC")  # type: ignore[valid-type]  # Pandera reads the instance
    updated_at: pl.Datetime("us", "UTC")  # type: ignore[valid-type]
