"""The address of one record: a template in which its key stands as path segments.

A key is data of the source's, and whoever may write a record there chooses it. So each value is
escaped as one segment (RFC 3986, section 2.2 and 3.3, read 2026-11-30), and one that would be a
step through the path, `.` or `..` (section 5.2.4), makes no address at all.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import httpx2

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.sources.http.addresses import origin_of

_PLACE: Final = re.compile(r"\{([^{}]+)\}")
_STEPS: Final = frozenset({"", ".", ".."})
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class UnaddressableError(ConfigurationError):
    """A key makes no address; what it was is not told."""


def places(template: str) -> tuple[str, ...]:
    """Return the names that stand in a template, in order."""
    return tuple(_PLACE.findall(template))


def check_template(template: str, *, what: str) -> None:
    """Refuse a template that could lead anywhere but to one path of one origin.

    Args:
        template: e.g. `https://host/v1/customers/{customer_id}/close`.
        what: its name in the policy, for the message.

    Raises:
        ConfigurationError: it is not absolute; or holds a user, a fragment or a stray brace; or a
            name stands twice, beside other text than a verb after a colon, or outside the path; or
            it is `http://` to another machine, which would show both record and secret on the way.
    """
    bare = _PLACE.sub("x", template)
    try:
        origin, url = origin_of(bare), httpx2.URL(bare)
    except (ConfigurationError, httpx2.InvalidURL):
        raise ConfigurationError(f"{what} is no absolute address; expected https://host/") from None
    if "{" in bare or "}" in bare or url.userinfo or url.fragment or "#" in bare:
        raise ConfigurationError(f"{what} holds a user, a fragment or a stray brace; expected none")
    if url.scheme != "https" and not (url.scheme == "http" and url.host in _LOCAL):
        raise ConfigurationError(f"{what} begins with {url.scheme}://; expected https://")
    around, _, path = template.partition("://")[2].partition("/")
    path, _, query = path.partition("?")
    if places(around) or places(query):
        raise ConfigurationError(f"{what} names a field outside the path; expected it as a segment")
    for segment in path.split("/"):
        if places(segment) and not re.fullmatch(r"\{[^{}]+\}(:[A-Za-z]+)?", segment):
            raise ConfigurationError(
                f"{what} names a field beside other text; expected it as a segment of its own"
            )
    named = places(template)
    if len(set(named)) != len(named):
        raise ConfigurationError(f"{what} names a field twice; expected each once ({origin})")


def address(template: str, key: Mapping[str, str | int]) -> str:
    """Return the address of one record.

    Args:
        template: one that `check_template` let through.
        key: the key's fields by name.

    Raises:
        UnaddressableError: a field is no segment.
    """

    def segment(found: re.Match[str]) -> str:
        value = str(key[found[1]])
        if value in _STEPS:
            raise UnaddressableError(
                f"the key field {found[1]} is empty or a step through the path; expected a name"
            )
        try:
            return quote(value, safe="")
        except UnicodeEncodeError:
            raise UnaddressableError(f"the key field {found[1]} is no Unicode text") from None

    return _PLACE.sub(segment, template)
