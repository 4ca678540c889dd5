"""Exit codes: what a script, a scheduler or an agent may conclude from a command's end."""

from enum import IntEnum
from typing import Final

from scan_pipeline.core.errors import (
    CancelledError,
    ConfigurationError,
    ContractError,
    EvidenceError,
    GateClosedError,
    ScanPipelineError,
)


class ExitCode(IntEnum):
    """0: accepted; 1: not accepted; 2: bad usage or contract; 3: could not run."""

    ACCEPTED = 0
    NOT_ACCEPTED = 1
    USAGE = 2
    COULD_NOT_RUN = 3


_CODES: Final[tuple[tuple[type[ScanPipelineError], ExitCode], ...]] = (
    (ConfigurationError, ExitCode.COULD_NOT_RUN),  # the contract is right, the surroundings are not
    (ContractError, ExitCode.USAGE),
    (GateClosedError, ExitCode.NOT_ACCEPTED),
    (EvidenceError, ExitCode.NOT_ACCEPTED),
    (CancelledError, ExitCode.NOT_ACCEPTED),
)
"""The first kind that fits decides."""


def code_of_error(error: BaseException) -> ExitCode:
    """Return the code of a command that ended with an error; what is not named could not run."""
    found = (code for kind, code in _CODES if isinstance(error, kind))
    return next(found, ExitCode.COULD_NOT_RUN)


def code_of_acceptance(*, accepted: bool) -> ExitCode:
    """Return the code of a command that came to an answer: a receipt, an audit, a collection."""
    return ExitCode.ACCEPTED if accepted else ExitCode.NOT_ACCEPTED
