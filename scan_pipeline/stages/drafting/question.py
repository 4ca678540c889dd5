"""What a person gives of a collection: its address, headers, and the names of secrets."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import httpx2

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.addresses import origin_of, shown
from scan_pipeline.sources.secrets import parse_secret

SCHEMES: Final = ("http", "https", "simulator")

SAMPLE_TOKEN: Final = "REGISTRY_TOKEN"  # noqa: S105  # the name of a variable
"""Where the sample registry's token is looked up, unless the person says otherwise."""

_SECRET: Final = re.compile(
    r"api[-_]?key|access[-_]?token|auth|secret|passw|credential|signature|cookie|session|^key$|^sig$"
    r"|^token$",
    re.IGNORECASE,
)
"""Names under which secrets travel; a draft is a file that people share."""


@record
class Question:
    """The first request of a draft, without its secrets.

    Attributes:
        url: the collection, without its query.
        params: the query, in the order it was typed.
        headers: headers without secrets.
        auth: how to prove who we are, as it stands in a scan file; None where it is not needed.
    """

    url: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    auth: Mapping[str, Any] | None

    @property
    def source(self) -> dict[str, Any]:
        """Return what is known of the source before anything is asked."""
        facts: dict[str, Any] = {"url": self.url}
        told = {"params": self.params, "headers": self.headers, "auth": self.auth}
        return facts | {name: value for name, value in told.items() if value}


def question(url: str, *, headers: Iterable[str] = (), auth: str | None = None) -> Question:
    """Read what was typed.

    Args:
        url: address of the collection, with the query that a first request needs.
        headers: `NAME=VALUE` each, none of them a secret.
        auth: `bearer=VARIABLE`, or `HEADER=VARIABLE` for a key in a header of its own.

    Raises:
        ContractError: it is no address that can be drafted, or a secret stands in it.
    """
    scheme = url.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise ContractError(
            f"found an address of the kind {scheme!r}; expected one of {', '.join(SCHEMES)}. Scans "
            "of databases, MCP tools and other sources are written by hand: see docs"
        )
    origin_of(url)
    parsed = httpx2.URL(url)
    if parsed.userinfo:
        raise ContractError(
            f"{shown(url)} was given with a user; expected an address alone, and the name of the "
            "variable that holds the secret: --auth bearer=VARIABLE"
        )
    if parsed.path.rstrip("/").endswith("/graphql"):
        raise ContractError(
            f"{shown(url)} looks like GraphQL, whose query only a person can write; expected a "
            "list that is read by GET. Start from provider github_graphql"
        )
    pairs = parse_qsl(parsed.query.decode(), keep_blank_values=True)
    params = dict(pairs)
    if len(params) < len(pairs):
        raise ContractError("a parameter stands twice in the address; expected each once")
    named = dict(_pair(each, "--header NAME=VALUE") for each in headers)
    for name in (*params, *named):
        if _SECRET.search(name):
            raise ContractError(
                f"{name} may be a secret, and a scan file holds none; expected the name of a "
                "variable that holds it: --auth bearer=VARIABLE or --auth HEADER=VARIABLE"
            )
    if auth is None and scheme == "simulator":
        auth = f"bearer={SAMPLE_TOKEN}"
    return Question(
        url=str(parsed.copy_with(query=None, fragment=None)),
        params=params,
        headers=named,
        auth=None if auth is None else _auth(auth),
    )


def _auth(typed: str) -> dict[str, Any]:
    name, variable = _pair(typed, "--auth bearer=VARIABLE or --auth HEADER=VARIABLE")
    reference = {"env": variable}
    parse_secret(reference)  # refuses what is no name of a variable, and does not show it
    if name.lower() == "bearer":
        return {"bearer": reference}
    return {"api_key": {"header": name, "value": reference}}


def _pair(typed: str, expected: str) -> tuple[str, str]:
    name, found, value = typed.partition("=")
    if not (name.strip() and found and value.strip()):
        raise ContractError(f"found no pair of a name and a value; expected {expected}")
    return name.strip(), value.strip()
