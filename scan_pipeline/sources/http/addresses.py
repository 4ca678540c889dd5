"""Addresses: where a request may go, and how one is shown without its secrets."""

from hashlib import sha256

import httpx2

from scan_pipeline.core.errors import ConfigurationError

_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL.

    Raises:
        ConfigurationError: it is not absolute, or no URL.
    """
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigurationError(f"found no URL ({error}); expected scheme://host/path") from error
    if not parsed.scheme or not parsed.host:
        raise ConfigurationError(
            f"{shown(url)!r} is not an absolute URL; expected scheme://host/path"
        )
    port = parsed.port or _PORTS.get(parsed.scheme)
    return f"{parsed.scheme}://{parsed.host}" + (f":{port}" if port else "")


def shown_link(url: str) -> str:
    """Return an address that a source gave, fit for messages: its origin, the rest as a digest.

    A link carries the continuation, in its query or in its path.
    """
    try:
        origin = origin_of(url)
    except ConfigurationError:
        return "an address that is no absolute URL"
    return f"{origin} (sha256:{sha256(url.encode()).hexdigest()[:16]})"


def shown(url: str) -> str:
    """Return a URL fit for messages: no query, no user, no fragment."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return "an address that is no URL"
    return str(parsed.copy_with(query=None, fragment=None, userinfo=b""))
