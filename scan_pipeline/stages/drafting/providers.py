"""Which provider's documented facts fit: by its host, or by the shape of its answers."""

from collections.abc import Mapping
from typing import Any, Final

import httpx2

from scan_pipeline.sources.provider_facts import provider_facts, provider_names
from scan_pipeline.stages.drafting.answers import FirstAnswer

_HOSTS: Final[Mapping[str, str]] = {
    "api.github.com": "github_rest",
    "slack.com": "slack",
    "graph.microsoft.com": "graph",
    "api.stripe.com": "stripe",
    ".okta.com": "okta",
    ".oktapreview.com": "okta",
}
"""By host; one that begins with a dot stands for all below it."""


def matching(url: str, first: FirstAnswer) -> tuple[str, str] | None:
    """Return a provider that ships and what it was recognised by, None where none fits."""
    host, path = httpx2.URL(url).host, httpx2.URL(url).path
    for name, provider in _HOSTS.items():
        if host == name or (name.startswith(".") and host.endswith(name)):
            return _shipped(provider, f"the host {host}")
    body = first.body if isinstance(first.body, Mapping) else {}
    if {"filtered_table_rows_count", "next", "rows", "query_ms"} <= body.keys():
        return _shipped("datasette", "the fields that Datasette puts around its rows")
    if any(str(name).startswith("@odata.") for name in body) and "value" in body:
        return _shipped("odata", "its @odata annotations")
    if path.endswith("/v2/_catalog") and "repositories" in body:
        return _shipped("docker_registry", "the catalog of a container registry")
    return None


def documented(provider: str) -> Mapping[str, Any]:
    """Return the source facts of a provider."""
    return provider_facts(provider).source


def provided(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the provider of a drafted source documents; nothing where it names none."""
    provider = facts.get("provider")
    return {} if not isinstance(provider, str) else documented(provider)


def _shipped(provider: str, by: str) -> tuple[str, str] | None:
    return (provider, by) if provider in provider_names() else None
