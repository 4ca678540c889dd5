"""How the network is reached: a proxy, a CA of one's own, a certificate that proves who we are.

Where a scan file says nothing, the surroundings count, as they do for curl and for httpx2: the
variables `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (also in small letters, which come
first) where `proxy` is not named, `SSL_CERT_FILE` and `SSL_CERT_DIR` where `ca_bundle` is not.
"""

import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal

import httpcore2
import httpx2
from pydantic import AfterValidator

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.addresses import shown
from scan_pipeline.sources.secrets import SecretRef


def _absolute(path: str) -> str:
    if not Path(path).is_absolute():
        raise ContractError("found a relative path; expected an absolute one")
    return path


AbsolutePath = Annotated[str, AfterValidator(_absolute)]


@record
class ProxyFacts:
    """A proxy that every request of the source goes through.

    Attributes:
        url: its address, without credentials.
        user: name it knows us by.
        password: what proves it.
    """

    url: str
    user: SecretRef | None = None
    password: SecretRef | None = None

    def __post_init__(self) -> None:
        try:
            url = httpx2.URL(self.url)
        except httpx2.InvalidURL:
            raise ContractError("the proxy's url is no address") from None
        if url.scheme not in ("http", "https") or not url.host:
            raise ContractError("the proxy's url must begin with http:// or https:// and a host")
        if url.userinfo:
            raise ContractError(
                "the proxy's url holds credentials, which receipts would show; name them under "
                "proxy.user and proxy.password"
            )
        if self.password is not None and self.user is None:
            raise ContractError("proxy.password needs proxy.user")


@record
class ClientCertificate:
    """The certificate that proves who we are to the source (mutual TLS).

    Attributes:
        certificate: path of a PEM file with the certificate and those above it.
        key: path of its key, None where the same file holds it.
        password: what the key is locked with.
    """

    certificate: AbsolutePath
    key: AbsolutePath | None = None
    password: SecretRef | None = None


@record
class NetworkFacts:
    """How the network is reached; nothing here changes which population is read.

    Attributes:
        proxy: the proxy to go through; `none` for no proxy whatever the variables say.
        ca_bundle: path of a PEM file with the only certificates that are trusted.
        client_certificate: what proves who we are.
        server_name: name that the source's certificate must bear, where it is not the address's.
    """

    proxy: ProxyFacts | Literal["none"] | None = None
    ca_bundle: AbsolutePath | None = None
    client_certificate: ClientCertificate | None = None
    server_name: str | None = None


class Network:
    """The ways out of here, from facts and surroundings.

    Args:
        facts: what the scan file says, None where it is silent.
        environ: where secrets and the variables of proxies are looked up.
    """

    def __init__(self, facts: NetworkFacts | None, environ: Mapping[str, str]) -> None:
        self._facts, self._environ = facts or NetworkFacts(), environ

    @property
    def server_name(self) -> str | None:
        """Return the name that is asked for and checked in TLS, None for the address's own."""
        return self._facts.server_name

    def tls(self) -> ssl.SSLContext:
        """Return what is trusted, and what proves who we are.

        Raises:
            ConfigurationError: a file is missing, is none of its kind, or stays locked.
        """
        bundle, ours = self._facts.ca_bundle, self._facts.client_certificate
        if bundle is None:
            context = httpcore2.default_ssl_context()
        else:
            try:
                context = ssl.create_default_context(cafile=bundle)
            except (OSError, ssl.SSLError) as error:
                raise _unusable("ca_bundle", bundle, error, "certificates in PEM") from error
        if ours is not None:
            # Without a password OpenSSL would ask for one at the terminal.
            password = "" if ours.password is None else ours.password.resolve(self._environ)
            try:
                context.load_cert_chain(ours.certificate, ours.key, password)
            except (OSError, ssl.SSLError) as error:
                raise _unusable(
                    "client_certificate",
                    ours.certificate,
                    error,
                    "a certificate and its key in PEM, and the key's password where it has one",
                ) from None
        return context

    def proxy(self, url: httpx2.URL) -> httpx2.Proxy | None:
        """Return the proxy on the way to an address, None where it is reached without.

        Raises:
            ConfigurationError: a variable names no proxy, or a secret is missing.
        """
        facts = self._facts.proxy
        if facts == "none":
            return None
        if facts is not None:
            user = facts.user and facts.user.resolve(self._environ)
            password = facts.password.resolve(self._environ) if facts.password else ""
            return httpx2.Proxy(facts.url, auth=None if user is None else (user, password))
        named = self._variable(f"{url.scheme}_proxy") or self._variable("all_proxy")
        if not named or reached_directly(url, self._variable("no_proxy") or ""):
            return None
        try:
            proxy = httpx2.Proxy(named if "://" in named else f"http://{named}")
        except (httpx2.InvalidURL, ValueError):
            proxy = None
        if proxy is None or proxy.url.scheme not in ("http", "https"):
            raise ConfigurationError(
                f"the variables name a proxy to {shown(str(url))} that is none of http or https; "
                "expected one, or network.proxy in the scan file"
            )
        return proxy

    def _variable(self, name: str) -> str | None:
        return self._environ.get(name) or self._environ.get(name.upper())


def reached_directly(url: httpx2.URL, no_proxy: str) -> bool:
    """Say whether `NO_PROXY` excepts an address from the proxies that variables name.

    As for curl: `*`, or hosts split by commas, each meaning itself and what lies below it, with or
    without a dot before it and a port behind it; or a network (`10.0.0.0/8`).
    """
    for name in (each.strip().lower() for each in no_proxy.split(",")):
        if name == "*":
            return True
        host, _, port = name.rpartition(":") if re.search(r"[^:]:\d+$", name) else (name, "", "")
        if port and int(port) != (url.port or {"http": 80, "https": 443}.get(url.scheme)):
            continue
        host = host.strip("[]").removeprefix("*").removeprefix(".")
        if host and (url.host == host or url.host.endswith(f".{host}") or _within(url.host, host)):
            return True
    return False


def _within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network)
    except ValueError:
        return False


def _unusable(what: str, path: str, error: OSError, expected: str) -> ConfigurationError:
    reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
    return ConfigurationError(
        f"network.{what} cannot be used ({reason}): {path}; expected {expected}"
    )
