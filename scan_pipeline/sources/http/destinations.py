"""Where the requests of one source may go, and with which of them its credentials do.

A link or a redirect may name any address. What lies inside our own network answers to us and not to
whoever named it (RFC 1918, RFC 3927, RFC 4193, RFC 6890, read 2026-11-30), so that such a target is
refused even where the contract names its origin, unless the source is of the same kind.
"""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

import httpx2

from scan_pipeline.core.errors import ConfigurationError, DestinationRefusedError
from scan_pipeline.sources.http.addresses import origin_of, shown_link

Resolve: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the addresses of a host name; none where there are none to be had."""


class Destinations:
    """The origin of a source and the others its contract names.

    Args:
        url: the source; its scheme, host and port are its origin.
        others: origins that its links may lead to as well; our credentials stay at home.
        resolve: looks up host names.
    """

    def __init__(self, url: str, *, others: tuple[str, ...], resolve: Resolve) -> None:
        self.origin = origin_of(url)
        self._others = frozenset(map(origin_of, others)) - {self.origin}
        self._resolve = resolve
        self._home: str | None = None

    def is_home(self, url: str) -> bool:
        """Say whether an address lies on the source's own origin, where credentials may go.

        Raises:
            DestinationRefusedError: it lies where no request may go.
        """
        if url == self._home:  # every page but the first, where a parameter carries the token
            return True
        try:
            origin = origin_of(url)
            named = bool(httpx2.URL(url).userinfo)
        except ConfigurationError as error:
            raise _refused(f"the next request would go nowhere: {shown_link(url)}") from error
        if named:
            raise _refused(f"{shown_link(url)} was given with a user; expected an address alone")
        if origin == self.origin:
            self._home = url
            return True
        allowed = sorted({self.origin, *self._others})
        if origin not in self._others:
            raise _refused(
                f"the next request would go to {shown_link(url)}; expected {' or '.join(allowed)}"
            )
        kinds = self._kinds(url) - self._kinds(self.origin)
        if kinds:
            raise _refused(
                f"{shown_link(url)} is {', '.join(sorted(kinds))}, and the source is not"
            )
        return False

    def _kinds(self, url: str) -> set[str]:
        host = httpx2.URL(url).host
        found = {_kind(address) for address in _literal(host) or self._resolve(host)}
        return {kind for kind in found if kind is not None}


def look_up(host: str) -> tuple[str, ...]:
    """Return the addresses of a host name as this machine sees them."""
    try:
        return tuple(str(each[4][0]) for each in socket.getaddrinfo(host, None))
    except OSError:
        return ()


def literal_only(host: str) -> tuple[str, ...]:
    """Look nothing up: what carries the requests knows other hosts than this machine."""
    return ("127.0.0.1",) if host == "localhost" or host.endswith(".localhost") else ()


def _literal(host: str) -> tuple[str, ...]:
    """Return a host that is an address, in any form that sockets take (`127.1`, `0x7f000001`)."""
    try:
        return (str(ip_address(host)),)
    except ValueError:
        pass
    try:
        return (socket.inet_ntoa(socket.inet_aton(host)),)
    except OSError:
        return ()


def _kind(address: str) -> str | None:
    """Return what an address is where it is none of the public network, else None."""
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback:
        return "a loopback address"
    if found.is_link_local:
        return "a link-local address"
    return None if found.is_global else "a private address"


def _refused(message: str) -> DestinationRefusedError:
    return DestinationRefusedError("destination_refused", message)
