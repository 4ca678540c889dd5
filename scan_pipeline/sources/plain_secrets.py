"""Secrets in plain sight: what stands under the name of a secret is to be a reference, not a fact.

Whatever stands in a scan file is kept in the evidence, shown in receipts and committed to version
control. The names are those of HTTP (RFC 9110, sections 11.6 and 11.7; RFC 6265, section 5.4), of
RFC 6750, section 2.3, and of what providers call their keys (`X-API-Key`, `PRIVATE-TOKEN`,
`Ocp-Apim-Subscription-Key`, `X-Vault-Token`, `x-functions-key`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx2

_HEADER: Final = re.compile(
    r"(^|[-_])(authorization|cookie2?|token|secret|passwd|password|credentials?|apikey|auth)$"
    r"|(^|[-_])(api|app|application|auth|access|account|client|functions|license|private|secret|"
    r"shared|subscription)[-_]?key$",
    re.IGNORECASE,
)
_HARMLESS: Final = re.compile(r"^x-(csrf|xsrf)-token$", re.IGNORECASE)
"""A request that only asks for such a token (`fetch`, SAP's OData) holds no secret."""

_PARAMETER: Final = re.compile(
    r"^(access[-_]?token|auth[-_]?token|api[-_]?(key|token)|client[-_]?secret|secret|passwd|password|"
    r"subscription[-_]?key|sig|x-amz-signature)$",
    re.IGNORECASE,
)


def is_secret_header(name: str) -> bool:
    """Say whether a header of this name carries a secret."""
    return bool(_HEADER.search(name.strip())) and not _HARMLESS.search(name.strip())


def is_secret_parameter(name: str) -> bool:
    """Say whether a query parameter of this name carries one; `page_token` and the like do not."""
    return bool(_PARAMETER.search(name.strip()))


def plain_secrets(facts: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield where a source's facts hold what must be a secret, and what to do instead.

    Args:
        facts: the source as JSON.
    """
    for at, headers in _headers(facts, ()):
        for name in filter(is_secret_header, headers):
            yield (*at, name), "holds a secret that receipts would show; name it under auth"
    for name in filter(is_secret_parameter, facts.get("params") or {}):
        yield ("params", name), "holds a secret that receipts would show; name it under auth"
    for at, address in _addresses(facts, ()):
        for name in filter(is_secret_parameter, _query_names(address)):
            yield at, f"holds a secret that receipts would show, {name}; name it under auth"


_PAYLOAD: Final = frozenset({"body", "arguments", "params"})
"""What is sent as it stands and names no headers of ours."""


def _headers(
    facts: Mapping[str, Any], at: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for name, value in facts.items():
        if name == "headers" and isinstance(value, Mapping):
            yield (*at, name), value
        elif isinstance(value, Mapping) and name not in _PAYLOAD:
            yield from _headers(value, (*at, name))


def _addresses(
    facts: Mapping[str, Any], at: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, value in facts.items():
        if name == "url" and isinstance(value, str):
            yield (*at, name), value
        elif isinstance(value, Mapping) and name not in _PAYLOAD:
            yield from _addresses(value, (*at, name))


def _query_names(address: str) -> list[str]:
    try:
        return list(dict.fromkeys(httpx2.URL(address).params.keys()))
    except httpx2.InvalidURL:  # told elsewhere
        return []
