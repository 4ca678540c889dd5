"""From the dotted path in a scan file to the class that walks, and the revision of its code."""

import importlib
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.adapter import Adapter, AdapterFacts, AdapterRef

ADAPTER: Final = "adapter"
"""Name of the field in a scan's source, and the word for its protocol."""

_EXPECTED: Final = "expected the dotted path of a scan_pipeline.adapters.Adapter"


@record
class LoadedAdapter:
    """A class that walks.

    Attributes:
        kind: the class.
        ref: its path, and the revision of its code as it is now.
    """

    kind: type[Adapter[Any]]
    ref: AdapterRef


def load_adapter(path: str) -> LoadedAdapter:
    """Import an adapter.

    Raises:
        ContractError: there is none of that path, it is no adapter, or its code has no revision.
    """
    module_name, _, name = path.rpartition(".")
    if not module_name:
        raise ContractError(f"found the adapter {path!r}; {_EXPECTED}")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ContractError(
            f"the adapter {path!r} cannot be imported: {error}; {_EXPECTED} that can be imported "
            "from the folder of the scan file or of the nearest pyproject.toml"
        ) from error
    kind = getattr(module, name, None)
    if kind is None:
        raise ContractError(f"the module {module_name} holds no {name}; {_EXPECTED}")
    if not (isinstance(kind, type) and issubclass(kind, Adapter)):
        raise ContractError(f"{path} is no scan_pipeline.adapters.Adapter; {_EXPECTED}")
    if left := sorted(kind.__abstractmethods__):
        raise ContractError(f"the adapter {path} does not define {', '.join(left)}; expected it to")
    facts = getattr(kind, "FACTS", None)
    if not (isinstance(facts, type) and issubclass(facts, AdapterFacts)):
        raise ContractError(
            f"the adapter {path} has no FACTS; expected a subclass of "
            "scan_pipeline.adapters.AdapterFacts, made with @record"
        )
    return LoadedAdapter(kind=kind, ref=AdapterRef(name=path, revision=_revision(kind, path)))


def with_adapter(source: Mapping[str, Any]) -> tuple[dict[str, Any], LoadedAdapter]:
    """Return a scan's source with the revision of its adapter filled in, and the adapter.

    One in which it is filled in already is returned as it is: a stored contract is read as it was.

    Raises:
        ContractError: see `load_adapter`; or a protocol is named beside it.
    """
    named = source[ADAPTER]
    if source.get("protocol", ADAPTER) != ADAPTER:
        raise ContractError(
            f"found protocol {source['protocol']!r} beside an adapter; expected one of the two"
        )
    path = named.get("name") if isinstance(named, Mapping) else named
    if not isinstance(path, str):
        raise ContractError(f"found no text; {_EXPECTED}")
    loaded = load_adapter(path)
    if isinstance(named, Mapping):
        return dict(source), loaded
    ref = {"name": loaded.ref.name, "revision": loaded.ref.revision}
    return {**source, "protocol": ADAPTER, ADAPTER: ref}, loaded


def make_importable(file: Path) -> None:
    """Let modules beside a scan file, and those of its project, be imported by name.

    The folder of the file and that of the nearest pyproject.toml (and its `src`) come last: they
    hide nothing that is installed.
    """
    folder = file.absolute().parent
    project = next((each for each in (folder, *folder.parents) if _is_project(each)), folder)
    for each in map(str, (project, project / "src", folder)):
        if each not in sys.path:
            sys.path.append(each)


def _is_project(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file()


def _revision(kind: type[Adapter[Any]], path: str) -> str:
    """Return the declared revision, else a digest of the text of the module."""
    if kind.REVISION is not None:
        if not isinstance(kind.REVISION, str) or not kind.REVISION:
            raise ContractError(f"the REVISION of {path} is no text; expected e.g. 'tickets/1'")
        return kind.REVISION
    source = getattr(sys.modules[kind.__module__], "__file__", None)
    try:
        text = Path(source or "").read_bytes()
    except OSError as error:
        raise ContractError(
            f"the text of {path} cannot be read, so that its revision is unknown; expected a "
            "REVISION on the class"
        ) from error
    return f"sha256:{sha256(text).hexdigest()}"
