"""What a reader is told when a call was not answered: which kind of help there is."""

from typing import Literal, TypeAlias

from scan_pipeline.core.canonical import CanonicalFormError
from scan_pipeline.core.errors import (
    ConfigurationError,
    EvidenceError,
    RetryError,
    ScanPipelineError,
)
from scan_pipeline.stages.readers.conditions import ConditionError

Remedy: TypeAlias = Literal["retry", "narrow", "restart", "ask_for_access", "stop"]
"""`retry` the same call later, `narrow` the question, `restart` with a new query, `ask_for_access`
of whoever keeps the policy, or `stop`: nothing the caller can change makes this call right."""


class ReaderError(ScanPipelineError):
    """A call that was not answered.

    Attributes:
        remedy: what the caller may do.
        code: one word for the cause, e.g. `query_unbounded`.
        detail: what whoever keeps the server should know and a reader must not; for the log alone,
            and without values of records all the same.
    """

    def __init__(
        self, remedy: Remedy, code: str, message: str, *, detail: str | None = None
    ) -> None:
        super().__init__(message)
        self.remedy, self.code, self.detail = remedy, code, detail


class LedgerError(ScanPipelineError):
    """The ledger of handles and budgets cannot be read or written.

    Attributes:
        passing: whether somebody else merely holds it now.
    """

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class PolicyError(ConfigurationError):
    """The policy cannot be read, or is none."""


def failure_of(error: Exception) -> ReaderError:
    """Return what a reader is told of any error: never its text, which may name what is hidden."""
    name = type(error).__name__
    match error:
        case ReaderError():
            return error
        case ConditionError():
            # Its words are of the columns that are seen, and of the caller's own values.
            return ReaderError("narrow", error.code, str(error))
        case CanonicalFormError():
            return ReaderError(
                "narrow", "value_unfit", "a value has no exact JSON form; expected one that has"
            )
        case PolicyError():
            return ReaderError(
                "ask_for_access",
                "policy_unusable",
                "the access policy cannot be read, and nothing is answered until it can",
                detail=str(error),
            )
        case LedgerError(passing=True) | RetryError():
            return ReaderError("retry", "busy", "something is busy; try again", detail=name)
        case LedgerError():
            return ReaderError(
                "stop",
                "ledger_unusable",
                "handles and budgets cannot be kept, and nothing is answered until they can",
                detail=str(error),
            )
        case EvidenceError():
            return ReaderError(
                "stop",
                "evidence_disagrees",
                "what is stored is not what its receipt says; `scan-pipeline audit` tells more",
                detail=name,
            )
        case ScanPipelineError():
            return ReaderError(
                "stop", "cannot_answer", "the server cannot answer this now", detail=name
            )
        case _:
            return ReaderError(
                "stop", "internal_error", "the server failed over this call", detail=name
            )
