"""What a model hands in, and what the control plane makes of it."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from scan_pipeline.agents.answers import Conclusion
from scan_pipeline.agents.report_check import Found
from scan_pipeline.core.claims import Completeness
from scan_pipeline.core.value import record


class ThemeFinding(BaseModel):
    """Records that tell of the same thing."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        min_length=1, max_length=80, description="what they share, in a few words, no counts"
    )
    rows: list[int] = Field(
        min_length=1, description="row numbers under the handle, each judged a match"
    )
    confidence: Annotated[float, Field(ge=0, le=1)]


class ReviewFinding(BaseModel):
    """What you found. It says nothing of how much you read: that is counted for you."""

    model_config = ConfigDict(extra="forbid")

    themes: list[ThemeFinding] = Field(description="the themes; none where nothing recurs")
    summary: str = Field(
        default="",
        max_length=4000,
        description="prose; a sentence on the collection must be cite_as of a conclusion, word "
        "for word, or it is withheld",
    )


Ending: TypeAlias = Literal["finding", "usage_limit", "no_finding", "nothing_to_read"]
"""How the model's run ended: with a finding; at the limit of its requests or tokens; without a
finding that could be read; or it was not asked, since there is no record."""

Prose: TypeAlias = Literal["stands", "withheld", "none"]


@record
class ReviewedTheme:
    """A theme whose every record was given to the model and judged a match by it.

    Attributes:
        name: the model's words; None where they were withheld.
        rows: row numbers under the review's handle.
        keys: the records' keys, in the same order.
        confidence: as the model gave it, 0 to 1.
    """

    name: str | None
    rows: tuple[int, ...]
    keys: tuple[str, ...]
    confidence: float


@record
class Review:
    """A review: what the control plane says of it, and what the model found.

    Attributes:
        conclusion: the only statement on the collection, with its signed claim.
        completeness: how much of it the model judged.
        themes: what it found.
        summary: its prose, where all of it stands.
        prose: whether it does.
        unsupported: its sentences that do not stand, and why.
        ended: how its run ended.
        quality: figures on the review itself, apart from coverage.
    """

    conclusion: Conclusion
    completeness: Completeness
    themes: tuple[ReviewedTheme, ...]
    summary: str | None
    prose: Prose
    unsupported: tuple[Found, ...]
    ended: Ending
    quality: dict[str, Any]
