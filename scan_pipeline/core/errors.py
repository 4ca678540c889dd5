"""One root, branches by what the caller can do.

    ScanPipelineError
    ├── RetryError           send the same request again, after a wait
    ├── RestartError         begin a new generation from nothing
    │   └── ErasedError      what is asked for was taken out for good
    │       └── KeyDestroyedError  what the destroyed key sealed is erased
    ├── NarrowError          ask for less: a limit, a window or a budget was hit
    ├── ContractError        fix the scan file, the configuration or the command
    │   └── ConfigurationError
    ├── EvidenceError        what is stored or was sent disagrees with itself: stop, look
    │   ├── ProtocolError    the source broke its declared protocol
    │   └── TamperedError    what is stored is not what was sealed
    ├── GateClosedError      the receipt does not support what was asked
    └── StopError            someone else holds the generation, or asked us to stop
        ├── WriterConflictError
        └── CancelledError

Messages say what was found, what was expected and what to do; facts are attributes.
"""


class ScanPipelineError(Exception):
    """Root of every error this package raises on purpose."""


class RetryError(ScanPipelineError):
    """Sending the same request again may help."""


class RestartError(ScanPipelineError):
    """Only a new generation may help; nothing of this one is carried over."""


class NarrowError(ScanPipelineError):
    """The work is larger than was allowed; raise the limit or ask for less."""


class ContractError(ScanPipelineError):
    """The scan file or the command is wrong; fix it and run again."""


class ConfigurationError(ContractError):
    """The surroundings are wrong: a missing secret, key, folder or extra."""


class EvidenceError(ScanPipelineError):
    """The evidence disagrees with itself; nothing may be concluded from it."""


class ProtocolError(EvidenceError):
    """The source did what its declared protocol does not allow.

    Attributes:
        code: the finding's code, e.g. `cursor_repeated`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class TamperedError(EvidenceError):
    """What is stored is not what was sealed.

    Attributes:
        what: the part that disagrees, e.g. `records` or `signature`.
    """

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what


class GateClosedError(ScanPipelineError):
    """The receipt does not support what was asked of it.

    Attributes:
        scan: name of the scan.
        generation: generation asked for, or None where there is none.
        reason: one word or sentence for the refusal.
    """

    def __init__(self, *, scan: str, generation: str | None, reason: str) -> None:
        super().__init__(f"{scan} {generation or '(no generation)'}: {reason}")
        self.scan, self.generation, self.reason = scan, generation, reason


class StopError(ScanPipelineError):
    """Stop here: the generation is not ours to write, or someone asked us to end."""


class WriterConflictError(StopError):
    """Another writer holds this generation; what we had in hand was dropped."""


class CancelledError(StopError):
    """Someone asked the walk to end."""


class TransientSourceError(RetryError):
    """The source did not answer the request this time.

    Attributes:
        reason: one word, as in a refused event.
        wait: seconds the source asked us to wait, None where it did not say.
    """

    def __init__(self, reason: str, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.reason, self.wait = reason, wait


class ErasedError(RestartError):
    """What is asked for was dropped by policy or erased on request: it is gone, not damaged."""


class KeyDestroyedError(ErasedError):
    """What is asked for was sealed with a key that was destroyed: it is erased, not damaged."""


class SnapshotExpiredError(RestartError):
    """The source no longer holds the version or continuation that the walk stands on."""


class ContinuationConsumedError(RestartError):
    """A continuation that works once may have been used up; asking again proves nothing."""


class SourceUnavailableError(RetryError):
    """The source did not answer within the retries allowed; the walk can be resumed."""


class SourceWindowError(NarrowError):
    """The source shows no more of this query's results; split the query."""


class TimeLimitError(NarrowError):
    """The seconds that the contract allows are used up, or a wait would outlast them.

    Attributes:
        allowed: the limit, in seconds.
        reached: what was reached, in seconds.
    """

    def __init__(self, message: str, *, allowed: float, reached: float) -> None:
        super().__init__(message)
        self.allowed, self.reached = allowed, reached


class AccessRefusedError(ConfigurationError):
    """The source refused our credentials or our right to read."""


class StaleCredentialsError(AccessRefusedError):
    """The source says that our credentials have worn out; new ones of the same kind may do."""


class DestinationRefusedError(ProtocolError):
    """The source sent us to an address that the contract does not allow."""
