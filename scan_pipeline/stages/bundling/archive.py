"""The zip of a bundle: written whole or not at all, and read as if by an enemy's hand.

Nothing is ever unpacked to a folder. A name that stands twice, or that would lead out of the folder
somebody else unpacks it to, is refused, since two programs would then see two bundles. No file is
read beyond the size that the signed manifest gives it.
"""

import hashlib
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from scan_pipeline.core.errors import ContractError, EvidenceError, TamperedError
from scan_pipeline.stages.bundling.manifest import BundledFile

MANIFEST_BYTES: Final = 2**24
"""Size of a manifest, or of the keys that it is checked with, at most: nothing vouches for it."""

_WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""The moment that every member bears; the manifest says when the bundle was made."""


class BundleWriter:
    """Puts files into a new bundle and keeps account of them."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.files: list[BundledFile] = []

    def put(self, path: str, content: bytes) -> None:
        """Add one file."""
        member = zipfile.ZipInfo(path, _WHEN)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = (stat.S_IFREG | 0o644) << 16
        self._archive.writestr(member, content)
        digest = hashlib.sha256(content).hexdigest()
        self.files.append(BundledFile(path=path, size=len(content), sha256=digest))


@contextmanager
def written(path: Path) -> Iterator[BundleWriter]:
    """Write a bundle; it is there under its name when it is whole, and not before.

    Raises:
        ContractError: something of that name is there; it stays as it is.
    """
    if path.exists():
        raise ContractError(f"found {path} already there; expected none: move it away")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with zipfile.ZipFile(beside, "x") as archive:
            yield BundleWriter(archive)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


class BundleFile:
    """An opened bundle.

    Args:
        archive: the zip.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = {member.filename: member for member in archive.infolist()}

    @property
    def names(self) -> frozenset[str]:
        """Names of its files."""
        return frozenset(self._members)

    def read(self, path: str, *, at_most: int) -> bytes:
        """Return a file, no more than so many bytes of it.

        Raises:
            TamperedError: there is none, or it is larger, or cannot be unpacked.
        """
        member = self._members.get(path)
        if member is None:
            raise TamperedError(path, f"the bundle holds no {path}; expected one")
        try:
            with self._archive.open(member) as source:
                content = source.read(at_most + 1)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
            raise TamperedError(path, f"{path} cannot be unpacked: {error}") from error
        if len(content) > at_most:
            raise TamperedError(path, f"{path} has more than the {at_most:,} bytes allowed")
        return content


@contextmanager
def opened(path: Path) -> Iterator[BundleFile]:
    """Open a bundle for reading.

    Raises:
        EvidenceError: it cannot be read.
        TamperedError: it is no zip, or its names are not those of a bundle.
    """
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise EvidenceError(
            f"cannot read {path}: {error.strerror}; expected a bundle, made by `bundle`"
        ) from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise TamperedError("bundle", f"{path} is no zip file: {error}") from error
    with archive:
        names = [member.filename for member in archive.infolist()]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise TamperedError(
                "bundle", f"the bundle holds {', '.join(repeated)} more than once; expected once"
            )
        for member in archive.infolist():
            if why := _strange(member):
                raise TamperedError(
                    "bundle", f"the bundle holds {member.filename!r}, {why}; expected plain files"
                )
        yield BundleFile(archive)


def _strange(member: zipfile.ZipInfo) -> str | None:
    """Say what is wrong with a member's name or kind."""
    # `filename` has what stands before a zero byte, and `/` for the system's separator.
    name, kind = member.orig_filename, stat.S_IFMT(member.external_attr >> 16)
    if name != member.filename or "\\" in name or any(ord(letter) < 32 for letter in name):
        return "a name that systems read differently"
    steps = name.split("/")
    if name.startswith("/") or ":" in name or {"", ".", ".."} & set(steps):
        return "a name that leads out of its folder, or is none"
    if kind not in (0, stat.S_IFREG):
        return "which is no file"
    return "which is encrypted" if member.flag_bits & 1 else None
