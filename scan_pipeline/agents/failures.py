"""What a reader is told when a call was not answered: which kind of help there is."""

from typing import Literal, TypeAlias

from scan_pipeline.core.errors import ScanPipelineError

Remedy: TypeAlias = Literal["retry", "narrow", "restart", "ask_for_access", "stop"]
"""`retry` the same call later, `narrow` the question, `restart` with a new query, `ask_for_access`
of whoever keeps the policy, or `stop`: nothing the caller can change makes this call right."""


class ReaderError(ScanPipelineError):
    """A call that was not answered.

    Attributes:
        remedy: what the caller may do.
        code: one word for the cause, e.g. `query_unbounded`.
    """

    def __init__(self, remedy: Remedy, code: str, message: str) -> None:
        super().__init__(message)
        self.remedy, self.code = remedy, code
