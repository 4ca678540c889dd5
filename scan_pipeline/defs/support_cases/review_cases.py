"""A language model reads the support cases for defects that recur; without Dagster.

It reads by the readers' operations as a principal of its own, which sees the texts and not whose
they are, within a budget. What may be said of the collection is `conclude`'s.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from scan_pipeline.agents.audit_log import audit_log, keyed_in
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.ledger import Ledger
from scan_pipeline.agents.model_review import Task, review
from scan_pipeline.agents.one_generation import OneGeneration
from scan_pipeline.agents.policy import Limits, Policy, Principal, ScanPolicy, View
from scan_pipeline.agents.reviewed import Review
from scan_pipeline.core.claims import Claim
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import record
from scan_pipeline.defs.analysis_result import AnalysisResult
from scan_pipeline.stages.stored_contract import stored_contract
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.tables import Table

if TYPE_CHECKING:
    from pydantic_ai.models import Model

MODEL: Final = "SCAN_PIPELINE_MODEL"
"""The variable that names the model, `provider:name`; without it nothing is sent to anyone."""

SCAN: Final = "support_cases"
LOCATION: Final = "analyses/support_cases/model_review"
QUALITY_LOCATION: Final = f"{LOCATION}_quality"

USAGE: Final = ("requests", "tool_calls", "input_tokens", "output_tokens")

SEEN: Final = ("case_id", "product", "priority", "status", "subject", "body")
"""Columns the model sees: the text and where it was filed, not whose it is."""

LIMITS: Final = Limits(run_pages=200, run_bytes=16 * 1024 * 1024, run_tokens=4 * 1024 * 1024)
"""The budget of a review: 10,000 cases by pages of 50, of some 1,500 bytes each."""

QUESTION: Final = (
    "Which defects of our products recur in these support cases? A case is a match where it tells "
    "of a defect that other cases tell of too; questions, wishes and single troubles are no match. "
    "Put cases of one defect into one theme."
)

_RESTS_ON: Final = [
    pa.field("model", pa.string(), nullable=False),
    pa.field("completeness", pa.string(), nullable=False),
    pa.field("receipt_id", pa.string(), nullable=False),
    pa.field("claim_id", pa.string(), nullable=False),
    pa.field("claim", pa.string(), nullable=False),
    pa.field("statement", pa.string(), nullable=False),
]

ROWS: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("theme", pa.int64(), nullable=False),
        pa.field("named", pa.string()),
        pa.field("cases", pa.int64(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("case_ids", pa.list_(pa.string()), nullable=False),
        *_RESTS_ON,
    ]
)
"""One row a theme, the largest first (1); completeness and claim stand on each."""

QUALITY_ROWS: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        *(
            pa.field(name, pa.int64(), nullable=False)
            for name in ("records", "read", "judged", "unsure", "left_out", "cited_in_vain")
        ),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("refusals", *USAGE)),
        pa.field("ended", pa.string(), nullable=False),
        pa.field("prose", pa.string(), nullable=False),
        pa.field("summary", pa.string()),
        pa.field("unsupported", pa.list_(pa.string()), nullable=False),
        *_RESTS_ON,
    ]
)
"""One row a generation: how the review itself went, apart from how much was covered."""

SHOWN: Final = ("theme", "named", "cases", "confidence", "completeness")


@record
class ModelReview(AnalysisResult):
    """What the model found; rows are as `ROWS`.

    Attributes:
        generation: the generation that was read.
        review: the review itself.
        quality_row: the row of `QUALITY_ROWS`.
    """

    generation: str
    review: Review
    quality_row: dict[str, Any]


def configured_model(environ: Mapping[str, str]) -> str | None:
    """Return the model that the environment names, None where it names none."""
    return environ.get(MODEL, "").strip() or None


def review_cases(
    collection: VerifiedCollection, workspace: Workspace, *, model: "str | Model | None" = None
) -> ModelReview:
    """Let a model read every case of the generation.

    Args:
        collection: the generation, opened by its receipt; each read asks that receipt again.
        workspace: where the tables lie.
        model: `provider:name` or a model of pydantic-ai; None for the configured one.

    Raises:
        ConfigurationError: none is configured, or it cannot be used.
        RetryError: the provider did not answer.
        ReaderError: the receipt fell while the model read.
    """
    chosen = model or configured_model(workspace.environ)
    if chosen is None:
        raise ConfigurationError(
            f"no model is configured; expected {MODEL}=provider:name, as pydantic-ai names it"
        )
    generation = collection.receipt.scan_generation
    principal = f"model_review.{generation}"
    found = review(
        _desk(collection, workspace, principal=principal),
        Task(
            scan=SCAN,
            principal=principal,
            question=QUESTION,
            key="case_id",
            nouns=("support cases", "cases", "defects", "themes"),
        ),
        model=chosen,
        log=audit_log(workspace),
    )
    named = chosen if isinstance(chosen, str) else chosen.model_name
    return _result(found, generation=generation, model=named)


def run_review(collection: VerifiedCollection, workspace: Workspace) -> ModelReview:
    """Review the collection by the configured model and store what it found."""
    found = review_cases(collection, workspace)
    store_review(found, workspace=workspace)
    return found


def store_review(found: ModelReview, *, workspace: Workspace) -> str:
    """Put a review in the place of an earlier one of its generation; return where it lies."""
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


def _desk(collection: VerifiedCollection, workspace: Workspace, *, principal: str) -> Desk:
    receipt = collection.receipt
    walked = receipt.evidence["pages"].generation  # of a restaged one, the generation it rests on
    scan = stored_contract(receipt.scan, walked, workspace=workspace)
    one = OneGeneration(scan, workspace=workspace, generation=receipt.scan_generation)
    policy = Policy(
        principals={principal: Principal(views={SCAN: ("texts",)})},
        scans={
            SCAN: ScanPolicy(views={"texts": View(columns=SEEN)}, shared=True, noun="support cases")
        },
        limits=LIMITS,
    )
    return Desk(
        workspace,
        collection=lambda _: one,
        policy=lambda: policy,
        ledger=Ledger(workspace.project.agents / "ledger.sqlite"),
        keyed=keyed_in(workspace),
    )


def _result(found: Review, *, generation: str, model: str) -> ModelReview:
    concluded = found.conclusion
    claim = Claim(
        name=concluded.claim,
        evaluated_by=concluded.evaluated_by,
        receipt_id=concluded.ground.receipt_id,
        statement=concluded.statement,
        claim_id=concluded.claim_id,
    )
    rests_on = {
        "model": model,
        "completeness": found.completeness,
        "receipt_id": claim.receipt_id,
        "claim_id": claim.claim_id,
        "claim": claim.name,
        "statement": claim.statement,
    }
    told = {"ended": found.ended, "prose": found.prose}
    unsupported = [f"{each.fault}: {each.sentence}" for each in found.unsupported]
    ranked = sorted(found.themes, key=lambda theme: (-len(theme.keys), theme.rows))
    return ModelReview(
        generation=generation,
        review=found,
        claim=claim,
        rows=tuple(
            {
                "scan_generation": generation,
                "theme": number,
                "named": theme.name,
                "cases": len(theme.keys),
                "confidence": theme.confidence,
                "case_ids": list(theme.keys),
                **rests_on,
            }
            for number, theme in enumerate(ranked, start=1)
        ),
        shown=SHOWN,
        completeness=found.completeness,
        quality={
            **found.quality,
            **told,
            "unsupported_sentences": len(unsupported),
        },
        quality_row={
            "scan_generation": generation,
            **dict.fromkeys(USAGE, 0),  # of a model that was not asked
            **found.quality,
            **told,
            "summary": found.summary,
            "unsupported": unsupported,
            **rests_on,
        },
    )
