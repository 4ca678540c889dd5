"""A word that keeps a generation while a review of it is open, and the one that lets it go."""

from typing import Final, Literal

from scan_pipeline.core.value import record

PREDICATE_TYPE: Final = "urn:scan-pipeline:hold:v1"


@record
class Hold:
    """A generation is held from now on, or let go.

    Attributes:
        hold_version: always 1.
        scan: name of the scan.
        scan_generation: which one.
        state: whether it is held from this moment on.
        said_at: the moment, RFC 3339 in UTC.
        because: why.
        by: who said so, None where nobody was named.
    """

    hold_version: Literal[1]
    scan: str
    scan_generation: str
    state: Literal["held", "released"]
    said_at: str
    because: str
    by: str | None = None
