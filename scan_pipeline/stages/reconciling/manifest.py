"""The manifest of a contract: a file with one key a line, JSON."""

import json
from pathlib import Path

from scan_pipeline.core.canonical import CanonicalFormError, key_bytes
from scan_pipeline.core.errors import ConfigurationError, ContractError


def read_manifest(path: str) -> frozenset[str]:
    """Return the canonical keys that a manifest lists.

    Raises:
        ContractError: it is not there, or a line of it is no key.
        ConfigurationError: it cannot be read.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ContractError(
            f"manifest {path}: found no such file; expected one with a JSON key a line: correct "
            "expect.manifest, or put the file there"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"manifest {path} cannot be read: {error.strerror}; expected a file of this user"
        ) from error
    except ValueError as error:
        raise _malformed(path, "text that is not UTF-8") from error
    return frozenset(
        _key(path, number, line) for number, line in enumerate(lines, 1) if line.strip()
    )


def _key(path: str, number: int, line: str) -> str:
    try:
        listed = json.loads(line)
        return key_bytes(listed if isinstance(listed, list) else [listed]).decode()
    except (ValueError, RecursionError, CanonicalFormError) as error:
        raise _malformed(path, f"line {number}, which is no key") from error


def _malformed(path: str, found: str) -> ContractError:
    return ContractError(f"manifest {path}: found {found}; expected one JSON key a line")
