"""The defects that recur in the support cases, with the cases behind each; without Dagster."""

from importlib.metadata import version
from typing import Any, Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.claims import aggregate_claim_name, make_claim
from scan_pipeline.core.receipt import in_words
from scan_pipeline.core.value import record
from scan_pipeline.defs.analysis_result import AnalysisResult
from scan_pipeline.defs.support_cases.themes import (
    ALIKE,
    NEARNESS,
    ONE_PRODUCT,
    Case,
    Theme,
    Themes,
    find_themes,
)
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.tables import Table

LOCATION: Final = "analyses/support_cases/recurring_defects"
QUALITY_LOCATION: Final = f"{LOCATION}_quality"

_RESTS_ON: Final = [
    pa.field("receipt_id", pa.string(), nullable=False),
    pa.field("claim_id", pa.string(), nullable=False),
    pa.field("claim", pa.string(), nullable=False),
    pa.field("statement", pa.string(), nullable=False),
]

ROWS: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("theme", pa.int64(), nullable=False),
        pa.field("recurring_defect", pa.bool_(), nullable=False),
        pa.field("terms", pa.string(), nullable=False),
        pa.field("cases", pa.int64(), nullable=False),
        pa.field("product", pa.string(), nullable=False),
        pa.field("product_share", pa.float64(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("case_ids", pa.list_(pa.string()), nullable=False),
        *_RESTS_ON,
    ]
)
"""One row a theme, the largest first (1); each with the claim: none travels without."""

QUALITY_ROWS: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("cases", pa.int64(), nullable=False),
        pa.field("in_themes", pa.int64(), nullable=False),
        pa.field("left_out", pa.int64(), nullable=False),
        pa.field("without_text", pa.int64(), nullable=False),
        pa.field("themes", pa.int64(), nullable=False),
        pa.field("confidence", pa.float64()),
        pa.field("method", pa.string(), nullable=False),
        pa.field("left_out_ids", pa.list_(pa.string()), nullable=False),
        *_RESTS_ON,
    ]
)
"""One row a generation: how good the grouping is, apart from how much was covered."""

SHOWN: Final = (
    "theme",
    "recurring_defect",
    "terms",
    "cases",
    "product",
    "product_share",
    "confidence",
)
"""Columns for people; the cases themselves are read in the table."""


@record
class RecurringDefects(AnalysisResult):
    """What was found; rows are as `ROWS`.

    Attributes:
        generation: the generation that was read.
        themes: the themes, and the cases in none.
        quality_row: the row of `QUALITY_ROWS`.
    """

    generation: str
    themes: Themes
    quality_row: dict[str, Any]

    @property
    def defects(self) -> tuple[Theme, ...]:
        """The themes that are taken for defects."""
        return tuple(theme for theme in self.themes.found if theme.is_defect)


def find_defects(collection: VerifiedCollection) -> RecurringDefects:
    """Group all cases of the generation by what they tell of.

    Raises:
        ConfigurationError: scikit-learn is not installed; names the extra.
        NarrowError: there are more cases than are compared pair by pair.
    """
    receipt = collection.receipt
    cases = _cases(collection)
    themes = find_themes(cases)
    defects = [theme for theme in themes.found if theme.is_defect]
    name = aggregate_claim_name(
        receipt.coverage_status,
        receipt.conclusion_scope,
        inspected=len(cases),
        population=receipt.unique_ids_observed,
    )
    in_defects, in_themes = _cases_of(defects), _cases_of(themes.found)
    claim = make_claim(
        name,
        evaluated_by="engine",
        receipt_id=collection.receipt_id,
        statement=f"{len(cases):,} support cases were compared by their words: {in_defects:,} fall "
        f"into {len(defects)} themes that sit mostly in one product and are taken for recurring "
        f"defects, {in_themes - in_defects:,} into {len(themes.found) - len(defects)} other "
        f"themes, {len(themes.left_out):,} into none; generation {receipt.scan_generation}, "
        f"{in_words(receipt)}.",
    )
    rests_on = {
        "receipt_id": collection.receipt_id,
        "claim_id": claim.claim_id,
        "claim": claim.name,
        "statement": claim.statement,
    }
    quality = {
        "cases": len(cases),
        "in_themes": in_themes,
        "left_out": len(themes.left_out),
        "without_text": len(themes.without_text),
        "themes": len(themes.found),
        "confidence": None if themes.confidence is None else round(themes.confidence, 3),
        "method": method(),
    }
    return RecurringDefects(
        generation=receipt.scan_generation,
        themes=themes,
        claim=claim,
        rows=tuple(
            {
                "scan_generation": receipt.scan_generation,
                "theme": number,
                "recurring_defect": theme.is_defect,
                "terms": ", ".join(theme.terms),
                "cases": len(theme.cases),
                "product": theme.product,
                "product_share": round(theme.product_share, 3),
                "confidence": round(theme.confidence, 3),
                "case_ids": list(theme.cases),
                **rests_on,
            }
            for number, theme in enumerate(themes.found, start=1)
        ),
        shown=SHOWN,
        quality=quality,
        quality_row={
            "scan_generation": receipt.scan_generation,
            **quality,
            "left_out_ids": list(themes.left_out),
            **rests_on,
        },
    )


def store_defects(found: RecurringDefects, *, workspace: Workspace) -> str:
    """Put what was found in the place of an earlier finding of its generation; return where."""
    root = workspace.lake.root
    kept = (
        (Table(f"{root}/{QUALITY_LOCATION}", QUALITY_ROWS), [found.quality_row], QUALITY_ROWS),
        (Table(f"{root}/{LOCATION}", ROWS), list(found.rows), ROWS),
    )
    for table, rows, schema in kept:
        table.replace_generation(
            pa.Table.from_pylist(rows, schema=schema), generation=found.generation
        )
    return f"{root}/{LOCATION}"


def run_defects(collection: VerifiedCollection, workspace: Workspace) -> RecurringDefects:
    """Find what recurs in the collection and store it."""
    found = find_defects(collection)
    store_defects(found, workspace=workspace)
    return found


def method() -> str:
    """Say how cases are grouped, with the version that did it and the bounds that decide."""
    return (
        f"TF-IDF and DBSCAN, scikit-learn {version('scikit-learn')}: cosine distance at most "
        f"{NEARNESS}, {ALIKE} cases alike, {ONE_PRODUCT:.0%} in one product for a defect"
    )


def _cases(collection: VerifiedCollection) -> list[Case]:
    """Return all cases ordered by their key, whatever order they were stored in."""
    read = (
        collection.frame()
        .select(
            "case_id",
            "product",
            pl.concat_str("subject", "body", separator="\n", ignore_nulls=True).alias("text"),
        )
        .sort("case_id")
        .collect()
    )
    return [Case(**row) for row in read.iter_rows(named=True)]


def _cases_of(themes: Any) -> int:
    return sum(len(theme.cases) for theme in themes)
