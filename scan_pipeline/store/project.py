"""Where a project keeps its lake, its keys, its trust file and Dagster's home.

Each place is named by an argument (the lake only), by a variable, or by the
`[tool.scan_pipeline]` table of a pyproject.toml; the working folder is never taken by
itself. What is still unnamed then lies beside a local lake; beside a remote one there is
no such place.

| place | variable | beside a local lake |
|---|---|---|
| `lake` | `SCAN_PIPELINE_LAKE` | |
| `keys` | `SCAN_PIPELINE_KEYS` | `<lake>/../keys` |
| `trust` | `SCAN_PIPELINE_TRUST` | `<lake>/../scan_pipeline_trust.json` |
| `dagster_home` | `DAGSTER_HOME` | `<lake>/../dagster_home`; with a remote lake beside the keys |
"""

import os
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, ValidationError, with_config

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import adapter, record

REMOTE_SCHEMES: Final = ("s3", "az", "gs")
TRUST_FILE: Final = "scan_pipeline_trust.json"

VARIABLES: Final[Mapping[str, str]] = {
    "lake": "SCAN_PIPELINE_LAKE",
    "keys": "SCAN_PIPELINE_KEYS",
    "trust": "SCAN_PIPELINE_TRUST",
    "dagster_home": "DAGSTER_HOME",
}

_Named = Annotated[str, Field(strict=True, min_length=1)]


@record
class Project:
    """The places of one project.

    Attributes:
        lake: an absolute local path, or an `s3://`, `az://` or `gs://` address.
        keys: folder of the private keys, never inside the lake.
        trust: file of the public keys that are believed, never inside the lake.
        dagster_home: Dagster's persistent home.
        root: folder of the pyproject.toml whose table was read, or None.
        alerts: its `alerts` table as written; `stages.alerting.settings` reads it.
    """

    lake: str
    keys: Path
    trust: Path
    dagster_home: Path
    root: Path | None
    alerts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def local_lake(self) -> Path | None:
        """The lake's folder, or None when the lake is remote."""
        return None if "://" in self.lake else Path(self.lake)

    @property
    def agents(self) -> Path:
        """Folder of the readers' ledger and log: beside the keys, and never in the lake."""
        return self.keys.parent / "agents"


@with_config(ConfigDict(extra="forbid"))  # a table is a dict, which a strict record refuses
@record
class _Table:
    lake: _Named | None = None
    keys: _Named | None = None
    trust: _Named | None = None
    dagster_home: _Named | None = None
    alerts: dict[str, Any] | None = None


@record
class _Place:
    """A place as somebody named it: the text, the folder it is relative to, and where it stood."""

    text: str
    base: Path
    said_by: str

    def path(self) -> Path:
        """The place as an absolute local path; `..` is folded, links are not followed."""
        if "://" in self.text:
            raise ConfigurationError(
                f"{self.said_by}: found the address {self.text!r}; expected a local path"
            )
        if self.text.startswith("~"):
            raise ConfigurationError(
                f"{self.said_by}: found {self.text!r}; expected a path without '~', which only a "
                "shell expands: write the folder in full"
            )
        return Path(os.path.normpath(self.base / self.text))

    def lake(self) -> str:
        """The place as a lake."""
        scheme, separator, rest = self.text.partition("://")
        if not separator:
            return str(self.path())
        if scheme not in REMOTE_SCHEMES or not rest.strip("/"):
            raise ConfigurationError(
                f"{self.said_by}: found the lake {self.text!r}; expected a local path or an "
                "address s3://BUCKET/..., az://CONTAINER/... or gs://BUCKET/..."
            )
        return self.text.rstrip("/")


def find_project(*, lake: str | None = None, cwd: Path, environ: Mapping[str, str]) -> Project:
    """Find where this project keeps its things, or say how to name the lake.

    The nearest pyproject.toml at or above `cwd` that has a `[tool.scan_pipeline]` table
    counts (as ruff does it: one without the table is passed over); its relative paths are
    relative to that file. Relative paths in the argument or in a variable are relative to
    `cwd`.

    Args:
        lake: the lake as the caller named it, before variables and table.
        cwd: folder to search upward from.
        environ: the variables.

    Raises:
        ConfigurationError: nothing names a lake; a variable is set but empty; the table is
            not readable or has unknown members; a remote lake without named keys and trust
            file; keys or trust file inside the lake.
    """
    cwd = cwd.absolute()
    root, table = _nearest_table(cwd)

    def named(name: str) -> _Place | None:
        variable = VARIABLES[name]
        if (text := environ.get(variable)) is not None:
            if not text.strip():
                raise ConfigurationError(
                    f"{variable} is set but empty; expected a place: name it, or unset the variable"
                )
            return _Place(text=text, base=cwd, said_by=variable)
        if root is not None and (text := getattr(table, name)) is not None:
            said_by = f"{root / 'pyproject.toml'} [tool.scan_pipeline] {name}"
            return _Place(text=text, base=root, said_by=said_by)
        return None

    place = named("lake") if lake is None else _Place(text=lake, base=cwd, said_by="the argument")
    if place is None or not place.text.strip():
        raise ConfigurationError(
            f"no lake is named: found no argument, no {VARIABLES['lake']}, and no `lake` in a "
            f"[tool.scan_pipeline] table of a pyproject.toml at or above {cwd}; expected one of "
            "the three, since the working folder is never taken by itself"
        )
    found = place.lake()
    beside = None if "://" in found else Path(found).parent

    def path(name: str, *, default: str) -> Path:
        if (named_place := named(name)) is not None:
            return named_place.path()
        if beside is None:
            raise ConfigurationError(
                f"the lake {found} is remote and nothing names `{name}`; expected "
                f"{VARIABLES[name]}, or `{name}` in [tool.scan_pipeline]: keys and trust never "
                "lie in the lake they vouch for"
            )
        return beside / default

    keys, trust = path("keys", default="keys"), path("trust", default=TRUST_FILE)
    for name, kept in (("keys", keys), ("trust", trust)):
        if lies_in_lake(kept, lake=found):
            raise ConfigurationError(
                f"`{name}` is {kept}, inside the lake {found}; expected a place outside: whoever "
                f"can write the lake could vouch for it. Set {VARIABLES[name]} or `{name}`"
            )
    home = named("dagster_home")
    return Project(
        lake=found,
        keys=keys,
        trust=trust,
        dagster_home=home.path() if home else (beside or keys.parent) / "dagster_home",
        root=root,
        alerts=table.alerts or {},
    )


def has_table(folder: Path) -> bool:
    """Say whether the pyproject.toml of this very folder names the places of a project.

    Raises:
        ConfigurationError: it cannot be read.
    """
    return _table_in(folder) is not None


def is_file(named: str) -> bool:
    """Say whether what was typed means a scan file rather than a scan's name."""
    return "/" in named or Path(named).suffix in (".yaml", ".yml")


def lies_in_lake(path: Path, *, lake: str) -> bool:
    """Whether a local path, its links followed, is a local lake or lies below it."""
    return "://" not in lake and path.resolve().is_relative_to(Path(lake).resolve())


def refusals(error: ValidationError) -> str:
    """What a strict parse refused, member by member, without any value that stood there."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(str(step) for step in detail['loc']) or '(whole)'}: {detail['msg']}"
        for detail in details
    )


def create_once(path: Path, *, data: bytes, mode: int) -> bool:
    """Put a whole file where none is; an existing one stays as it is.

    The bytes go to a file of their own, which then gets its name by a hard link: a reader
    sees all of it or nothing, and of two processes racing exactly one is told True.

    Args:
        path: the file to create, in an existing folder.
        data: its content.
        mode: its permission bits, whatever the umask.

    Returns:
        True if this call created it, False if it was there.

    Raises:
        ConfigurationError: the folder cannot be written or knows no hard links.
    """
    whole = _write_beside(path, data=data, mode=mode)
    try:
        path.hardlink_to(whole)
    except FileExistsError:
        return False
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        whole.unlink()
    return True


def replace_file(path: Path, *, data: bytes, mode: int) -> None:
    """Put a whole file in the place of another; a reader sees the old one or the new one."""
    _write_beside(path, data=data, mode=mode).replace(path)


def _write_beside(path: Path, *, data: bytes, mode: int) -> Path:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    return beside


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot create {path}: {error.strerror}; expected a folder that this user may write, on "
        "a file system with hard links"
    )


def _nearest_table(cwd: Path) -> tuple[Path | None, _Table]:
    for folder in (cwd, *cwd.parents):
        if (table := _table_in(folder)) is not None:
            return folder, table
    return None, _Table()


def _table_in(folder: Path) -> _Table | None:
    file = folder / "pyproject.toml"
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error}; expected TOML, since it may name the lake"
        ) from error
    tool = content.get("tool")
    if not isinstance(tool, dict) or "scan_pipeline" not in tool:
        return None
    try:
        return adapter(_Table).validate_python(tool["scan_pipeline"])
    except ValidationError as error:
        raise ConfigurationError(
            f"{file} [tool.scan_pipeline]: {refusals(error)}; expected only "
            f"{', '.join(VARIABLES)}, each a text, and the table alerts"
        ) from error
