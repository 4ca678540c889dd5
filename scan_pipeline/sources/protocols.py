"""The protocols there are, one module each; only the one a scan uses is imported."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import record
from scan_pipeline.sources.source import Source
from scan_pipeline.sources.surroundings import Surroundings


@record
class Protocol:
    """One way to advance.

    Attributes:
        facts: what a scan file declares of such a source.
        open: opens one; nothing is sent yet.
    """

    facts: type[SourceFacts]
    open: Callable[[Any, Surroundings], Source]


MODULES: Final[Mapping[str, str]] = {
    "aws": "scan_pipeline.sources.aws",
    "delta_link": "scan_pipeline.sources.delta_link",
    "elasticsearch": "scan_pipeline.sources.elasticsearch",
    "etcd": "scan_pipeline.sources.etcd",
    "kubernetes": "scan_pipeline.sources.kubernetes",
    "last_key": "scan_pipeline.sources.last_key",
    "mcp_tool": "scan_pipeline.sources.mcp_tool",
    "next_link": "scan_pipeline.sources.next_link",
    "offset": "scan_pipeline.sources.offset",
    "page_token": "scan_pipeline.sources.page_token",
    "sql": "scan_pipeline.sources.sql",
}
"""By the word in a scan file, the module whose `PROTOCOL` it is."""


def protocol(name: str) -> Protocol:
    """Return a protocol by its word.

    Raises:
        ContractError: there is none of that name.
        ConfigurationError: its module needs an extra that is not installed.
    """
    if name not in MODULES:
        raise ContractError(f"found protocol {name!r}, expected one of {sorted(MODULES)}")
    try:
        module = importlib.import_module(MODULES[name])
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"protocol {name} needs {error.name}, which is not installed; expected "
            f"pip install 'scan-pipeline[{name}]'"
        ) from error
    found: Protocol = module.PROTOCOL
    return found
