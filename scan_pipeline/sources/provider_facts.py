"""What providers document of their APIs, as files of facts that are merged under a scan's source.

A file `providers/<provider>.yaml` holds `provider`, `documentation` (pages, each with the day it
was read), `source` (the facts) and `may_change` (dotted paths that a scan may set otherwise, e.g.
the page size). A scan that says `provider: slack` gets the facts; it adds its own, and may
contradict only those. The provider's name and a digest of its facts become part of the source, and
with it of the scope digest: a changed file is another contract.
"""

import json
from collections.abc import Mapping
from datetime import date
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record

PROVIDER: Final = "provider"
"""Name of the field in a scan's source; its documented facts or, once merged, a reference."""


@record
class DocumentationPage:
    """A page of a provider's documentation.

    Attributes:
        page: its address.
        read: the day it was read; None where it was not.
        extent: how much of it: the page, an excerpt, or nothing: the fact is common knowledge then,
            and waits for someone to open the page.
    """

    page: Annotated[str, Field(pattern="^https://")]
    read: date | None = None
    extent: Literal["page", "excerpt", "not_opened"] = "page"


@record
class ProviderFacts:
    """One provider's documented facts.

    Attributes:
        provider: its name, as the file is called.
        documentation: the pages consulted.
        source: facts to be merged under a scan's source.
        may_change: dotted paths below `source` that a scan may set otherwise.
    """

    provider: Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
    documentation: Annotated[tuple[DocumentationPage, ...], Field(min_length=1)]
    source: Mapping[str, JsonValue]
    may_change: tuple[str, ...] = ()

    @property
    def revision(self) -> str:
        """Return `sha256:<hex>` over the facts, as a scope digest covers them."""
        facts = {
            "provider": self.provider,
            "source": self.source,
            "may_change": list(self.may_change),
        }
        return f"sha256:{digest_of(facts).hex()}"


@record
class Conflict:
    """A fact of a scan that contradicts its provider's documentation."""

    at: tuple[str, ...]
    message: str


def provider_names() -> tuple[str, ...]:
    """Return the names of the providers that ship."""
    files = (each.name for each in _folder().iterdir())
    names = (each.removesuffix(".yaml") for each in files if each.endswith(".yaml"))
    return tuple(sorted(names))


def provider_facts(name: str) -> ProviderFacts:
    """Read one provider's file.

    Raises:
        ContractError: there is none of that name, or it does not hold what it should.
    """
    if name not in provider_names():
        raise ContractError(f"found provider {name!r}, expected one of {list(provider_names())}")
    text = (_folder() / f"{name}.yaml").read_text("utf-8")
    try:
        found = TypeAdapter(ProviderFacts).validate_json(
            json.dumps(yaml.safe_load(text), default=str)
        )
    except (ValidationError, yaml.YAMLError) as error:
        raise ContractError(f"the file of provider {name} is wrong: {error}") from error
    if found.provider != name:
        raise ContractError(f"the file of provider {name} names {found.provider!r}")
    return found


def with_provider(source: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Conflict, ...]]:
    """Return a scan's source with its provider's facts under its own, and what contradicts them.

    A source that names none, or in which they are merged already, is returned as it is: a stored
    contract is read as it was, whatever the file says by now.

    Raises:
        ContractError: see `provider_facts`.
    """
    name = source.get(PROVIDER)
    if not isinstance(name, str):
        return dict(source), ()
    facts = provider_facts(name)
    own = {field: value for field, value in source.items() if field != PROVIDER}
    conflicts: list[Conflict] = []
    merged = _merged(facts.source, own, facts=facts, at=(), conflicts=conflicts)
    return {**merged, PROVIDER: {"name": name, "revision": facts.revision}}, tuple(conflicts)


def _merged(
    documented: Mapping[str, Any],
    own: Mapping[str, Any],
    *,
    facts: ProviderFacts,
    at: tuple[str, ...],
    conflicts: list[Conflict],
) -> dict[str, Any]:
    merged = dict(documented)
    for field, value in own.items():
        here = (*at, field)
        under = documented.get(field)
        if field not in documented or value == under:
            merged[field] = value
        elif isinstance(under, Mapping) and isinstance(value, Mapping):
            merged[field] = _merged(under, value, facts=facts, at=here, conflicts=conflicts)
        elif ".".join(here) in facts.may_change:
            merged[field] = value
        else:
            pages = ", ".join(each.page for each in facts.documentation)
            conflicts.append(
                Conflict(
                    at=here,
                    message=f"{facts.provider} documents another value ({pages}); remove this one, "
                    "or leave out provider and declare every fact yourself",
                )
            )
    return merged


def _folder() -> Traversable:
    return resources.files("scan_pipeline.sources") / "providers"
