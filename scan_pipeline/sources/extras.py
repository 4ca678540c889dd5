"""Libraries that are installed on demand: one that is missing names the extra it comes with."""

from collections.abc import Iterator
from contextlib import contextmanager

from scan_pipeline.core.errors import ConfigurationError


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Import within this block what an extra brings.

    Args:
        extra: its name.
        what: the field or protocol that needs it, for the message.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{what} needs {error.name}, which is not installed; expected pip install "
            f"'scan-pipeline[{extra}]'"
        ) from error
