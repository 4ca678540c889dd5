"""Where things lie in the lake, and the small files in it that no table engine is needed for.

    <root>/<zone>/<scan>/<table>                      Delta tables: evidence, staging, receipts
    <root>/published/<scan>                           the last accepted generation
    <root>/receipts/<scan>/<generation>.dsse.json     a receipt as a file

pyarrow is imported only for a remote lake, so that reading a receipt of a local one stays cheap.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from scan_pipeline.core.errors import (
    ConfigurationError,
    ContractError,
    EvidenceError,
    WriterConflictError,
)
from scan_pipeline.core.value import record
from scan_pipeline.store.project import REMOTE_SCHEMES, create_once, replace_file

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

Zone: TypeAlias = Literal["evidence", "staging", "receipts"]

RECEIPT_SUFFIX: Final = ".dsse.json"

WITHDRAWN: Final = "WITHDRAWN.txt"
"""What stands in the place of a published table that was withdrawn, and says why."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_GENERATION: Final = re.compile(r"\d{8}T\d{6}Z(\.\d+)?", re.ASCII)
_UNSAFE: Final = frozenset("%[]|^\\#?")
"""What deltalake 1.6.6 gets wrong in a local path (found 2026-11): it takes `a%20b` for `a b`, so
that one table is written and another one read, aborts at brackets, and overlooks commits after #
or ?. Blanks and letters of any script are well."""


def check_name(name: str) -> str:
    """Return the name of a scan or table, or raise ContractError."""
    if not _NAME.fullmatch(name):
        raise ContractError(
            f"found the name {name!r}; expected a small letter, then small letters, digits and _"
        )
    return name


def check_generation(generation: str) -> str:
    """Return a generation's name, or raise ContractError; it goes into paths and predicates."""
    if not _GENERATION.fullmatch(generation):
        raise ContractError(
            f"found the generation {generation!r}; expected one like 20261130T020000Z, "
            "or 20261130T020000Z.2 for its second attempt"
        )
    return generation


@record
class Lake:
    """A lake by its root; nothing is looked at or created before it is asked for.

    Attributes:
        root: a local folder (a relative one is taken from the working folder, once and for all)
            or an `s3://`, `az://` or `gs://` address.

    Raises:
        ConfigurationError: the root is empty, of another scheme, or a path that the Delta
            library does not handle faithfully.
    """

    root: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", _checked_root(self.root))

    @property
    def is_local(self) -> bool:
        """Whether the lake is a folder of this machine."""
        return "://" not in self.root

    def table_uri(self, zone: Zone, scan: str, table: str) -> str:
        """Return where a scan's table lies."""
        return f"{self.root}/{zone}/{check_name(scan)}/{check_name(table)}"

    def published_uri(self, scan: str) -> str:
        """Return where the last accepted generation of a scan lies."""
        return f"{self.root}/published/{check_name(scan)}"

    def receipt_path(self, scan: str, generation: str) -> str:
        """Return where the receipt of a generation lies as a file."""
        file = check_generation(generation) + RECEIPT_SUFFIX
        return f"{self.root}/receipts/{check_name(scan)}/{file}"

    def checks_folder(self, scan: str) -> str:
        """Return where the passed checks of a scan's contract lie, one file each."""
        return f"{self.root}/receipts/{check_name(scan)}/checks"

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        if self.is_local:
            return self._local(path).exists()
        filesystem, inner = open_filesystem(self._inside(path))
        return filesystem.get_file_info(inner).type.name != "NotFound"

    def read_bytes(self, path: str) -> bytes:
        """Return a small file's content.

        Raises:
            EvidenceError: there is no such file, or it cannot be read.
        """
        try:
            if self.is_local:
                return self._local(path).read_bytes()
            filesystem, inner = open_filesystem(self._inside(path))
            with filesystem.open_input_stream(inner) as source:
                return source.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise EvidenceError(
                f"found no file {path}; expected one: it was never written, or was removed"
            ) from error
        except OSError as error:
            raise EvidenceError(
                f"{path} cannot be read ({error.strerror or type(error).__name__}); expected a "
                "file that this user may read: look at its mode and owner, and at the lake"
            ) from error

    def write_once(self, path: str, data: bytes) -> None:
        """Create a file that is never written again; readers see all of it or nothing.

        In a local lake exactly one of several writers succeeds. A remote one is looked at and
        then written, which two writers at the same moment both pass: there the Delta commit that
        goes before (a receipt is a table row first) is what admits only one.

        Raises:
            WriterConflictError: the file is there; it stays as it is.
            ConfigurationError: the folder cannot be written or knows no hard links.
        """
        if self.is_local:
            target = self._local(path)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigurationError(
                    f"cannot create {target.parent}: {error.strerror}; expected a lake that "
                    "this user may write"
                ) from error
            created = create_once(target, data=data, mode=0o644)
        else:
            created = not self.exists(path)
            if created:
                filesystem, inner = open_filesystem(self._inside(path))
                with filesystem.open_output_stream(inner) as sink:
                    sink.write(data)
        if not created:
            raise WriterConflictError(
                f"found {path} already written; expected to be its only writer: read that one"
            )

    def replace(self, path: str, data: bytes) -> None:
        """Put a whole file in the place of another; a reader sees the old one or the new one."""
        if self.is_local:
            replace_file(self._local(path), data=data, mode=0o644)
            return
        filesystem, inner = open_filesystem(self._inside(path))
        with filesystem.open_output_stream(inner) as sink:
            sink.write(data)

    def withdraw(self, folder: str, *, word: str) -> None:
        """Take a table away and leave a word in its place, so that nobody reads on unaware."""
        filesystem, inner = open_filesystem(self._inside(folder))
        # The log goes first: without it no reader takes the files for a table.
        for path in (f"{inner}/_delta_log", inner):
            filesystem.delete_dir_contents(path, missing_dir_ok=True)
        with filesystem.open_output_stream(f"{inner}/{WITHDRAWN}") as sink:
            sink.write(word.encode())

    def remove_word(self, folder: str) -> None:
        """Take away the word that `withdraw` left, where there is one."""
        if self.exists(path := f"{folder}/{WITHDRAWN}"):
            filesystem, inner = open_filesystem(self._inside(path))
            filesystem.delete_file(inner)

    def list_names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted, hidden ones left out; none if it is not there."""
        if self.is_local:
            folder = self._local(path)
            names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        else:
            from pyarrow.fs import FileSelector  # noqa: PLC0415  # heavy, and only remote

            filesystem, inner = open_filesystem(self._inside(path))
            found = filesystem.get_file_info(FileSelector(inner, allow_not_found=True))
            names = [entry.base_name for entry in found]
        return tuple(sorted(name for name in names if not name.startswith(".")))

    def _inside(self, path: str) -> str:
        if not path.startswith(f"{self.root}/") or ".." in path.split("/"):
            raise ContractError(
                f"found the path {path}; expected one below the lake {self.root}, without '..'"
            )
        return path

    def _local(self, path: str) -> Path:
        return Path(self._inside(path))


def open_filesystem(
    uri: str, *, environ: Mapping[str, str] = os.environ
) -> tuple["FileSystem", str]:
    """Return pyarrow's file system for a local path or an address, and the path inside it.

    Credentials come from where each vendor's SDK looks; for `az://` from the variables that the
    Delta library reads too (AZURE_STORAGE_ACCOUNT_NAME and _KEY, or _SAS_TOKEN).

    Args:
        uri: a place in a lake.
        environ: the variables.

    Raises:
        ConfigurationError: an `az://` address and no account.
    """
    from pyarrow import fs  # noqa: PLC0415  # a reader of local receipts never comes here

    scheme, separator, inner = uri.partition("://")
    if not separator:
        return fs.LocalFileSystem(), uri
    if scheme != "az":
        return fs.FileSystem.from_uri(uri)
    account = environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise ConfigurationError(
            f"found no AZURE_STORAGE_ACCOUNT_NAME for {uri}; expected the account's name: set it"
        )
    azure = fs.AzureFileSystem(
        account,
        account_key=environ.get("AZURE_STORAGE_ACCOUNT_KEY"),
        sas_token=environ.get("AZURE_STORAGE_SAS_TOKEN"),
    )
    return azure, inner


def make_private(folder: str, *, levels: int) -> None:
    """Create a local folder that only its owner enters, and its parents.

    Args:
        folder: the folder.
        levels: number of path members, counted from the end, that become 0700; those that exist
            are narrowed to it.

    Raises:
        ConfigurationError: a folder is another user's or cannot be created.
    """
    path = Path(folder)
    guarded = [*reversed(path.parents), path][-levels:]
    try:
        guarded[0].parent.mkdir(parents=True, exist_ok=True)
        for member in guarded:
            member.mkdir(mode=0o700, exist_ok=True)
            if member.stat().st_mode & 0o077:
                member.chmod(0o700)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make {error.filename} private: {error.strerror}; expected folders of "
            "evidence that belong to this user (0700)"
        ) from error


def _checked_root(root: str) -> str:
    scheme, separator, rest = root.partition("://")
    if separator:
        if scheme not in REMOTE_SCHEMES or not rest.strip("/"):
            raise ConfigurationError(
                f"found the lake {root!r}; expected a local folder, or an address that begins "
                f"with {', '.join(f'{name}://' for name in REMOTE_SCHEMES)}"
            )
        return root.rstrip("/")
    if not root.strip():
        raise ConfigurationError("found an empty lake root; expected a folder or an address")
    # Made absolute here, so that changing the working folder later cannot move the lake.
    path = str(Path(root).absolute())
    if unsafe := sorted(_UNSAFE & set(path)):
        raise ConfigurationError(
            f"found {' '.join(unsafe)} in the lake's path {path}; expected none of "
            f"{' '.join(sorted(_UNSAFE))}, with which the Delta library reads another folder "
            "than it writes: move the lake"
        )
    return path
