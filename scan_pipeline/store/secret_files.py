"""Private files: written once, for this user alone, and refused where others may read them."""

import os
import stat
from pathlib import Path

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.store.project import create_once


def create_secret(path: Path, *, data: bytes) -> None:
    """Put a private file where none is; who comes second leaves the first one's as it is."""
    folder = path.parent
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The default place may lie in a work tree: no key is ever offered for a commit.
        create_once(folder / ".gitignore", data=b"*\n", mode=0o600)
    if (mode := stat.S_IMODE(folder.stat().st_mode)) & 0o077:
        raise ConfigurationError(
            f"the folder of keys {folder} has mode {mode:04o}; expected 0700 before a key is put "
            f"there: chmod 700 {folder}"
        )
    create_once(path, data=data, mode=0o600)


def read_secret(path: Path) -> bytes | None:
    """Read a private file, None where there is none; mounted ones may be 0440."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}; expected a private key file of this user"
        ) from error
    if mode & 0o027:
        raise ConfigurationError(
            f"{path} has mode {mode:04o}: others may read or write this key; expected 0600: "
            f"chmod 600 {path}, and think of the key as known"
        )
    return data
