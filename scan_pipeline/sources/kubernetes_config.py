"""A cluster as a kubeconfig names it, or as the pod we run in is told of it.

A kubeconfig is read by the official client's loader and by nothing else, so that contexts, inlined
certificates, token files and credential plugins mean what they mean to it; requests are ours. From
its documentation and source (kubernetes 37.0.1, `kubernetes/config/kube_config.py`), and from
kubernetes.io/docs/reference/access-authn-authz/authentication (client-go credential plugins); read
2026-11-30:

- A plugin that fails is logged and passed over, and the client would go on as nobody: a context
  that names a user and gives no credential is refused here.
- A token with an expiry is renewed by the loader when it is asked for; one without is good until
  the server answers 401, after which the plugin is to be run again.
- The service account's token of a pod is read again every minute.
- The loader writes back what a legacy auth provider renewed, since a refresh token that works once
  would otherwise lock its owner out.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.config.config_exception import ConfigException

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.network import (
    ClientCertificate,
    Network,
    NetworkFacts,
    ProxyFacts,
)
from scan_pipeline.sources.kubernetes_access import ClusterAccess

_TOKEN: Final = "BearerToken"  # noqa: S105 - the loader's name for it


class LoadedAccess(ClusterAccess):
    """What the official client's loader makes of a kubeconfig, or of the pod we run in.

    Args:
        context: context of the kubeconfig; None for the pod's own service account.
        kubeconfig: its path; None for where kubectl looks, `KUBECONFIG` or `~/.kube/config`.
        expected: address that the server must have, None for any.
        environ: where `KUBECONFIG` is looked up.
    """

    def __init__(
        self,
        *,
        context: str | None,
        kubeconfig: str | None,
        expected: str | None,
        environ: Mapping[str, str],
    ) -> None:
        self._context, self._expected, self._environ = context, expected, environ
        self._file = kubeconfig or environ.get("KUBECONFIG") or "~/.kube/config"

        self._kept: Any = None
        self._user: str | None = None

    @property
    def _loaded(self) -> Any:
        if self._kept is None:
            self._kept = self._load()
        return self._kept

    @property
    def server(self) -> str:
        """Return the server that the kubeconfig names."""
        return str(self._loaded.host).rstrip("/")

    def headers(self, worn_out: bool) -> Mapping[str, str]:
        """Return the token, renewed by the loader where its time is over or the server refused it.

        What cannot be renewed stays as it was; the server then says what it is worth.
        """
        if worn_out:
            with suppress(ConfigurationError):
                self._kept = self._load()
        try:
            token = self._loaded.get_api_key_with_prefix(_TOKEN)
        except (ConfigException, OSError) as error:
            raise ConfigurationError(
                f"the token of {self._named} cannot be read again: {type(error).__name__}"
            ) from None
        return {"authorization": str(token)} if token else {}

    def principal(self) -> bytes | None:
        """Return server, context and the context's user by name: its tokens change by the hour."""
        return canonical_json([self.server, self._context, self._user])

    def network(self) -> Network | None:
        """Return the ways to the server with the cluster's own certificates, name and proxy."""
        loaded = self._loaded
        ours = None
        if loaded.cert_file:
            ours = ClientCertificate(
                certificate=_whole_path(loaded.cert_file),
                key=_whole_path(loaded.key_file) if loaded.key_file else None,
            )
        facts = NetworkFacts(
            proxy=None if not loaded.proxy else ProxyFacts(url=str(loaded.proxy)),
            ca_bundle=_whole_path(loaded.ssl_ca_cert) if loaded.ssl_ca_cert else None,
            client_certificate=ours,
            server_name=loaded.tls_server_name or None,
        )
        return Network(facts, self._environ)

    @property
    def _named(self) -> str:
        return "this pod" if self._context is None else f"context {self._context}"

    def _load(self) -> Any:
        loaded = Configuration()
        loaded.proxy = None  # only what the kubeconfig names; variables are looked up elsewhere
        try:
            if self._context is None:
                config.load_incluster_config(client_configuration=loaded)
                self._user = "service account"
            else:
                config.load_kube_config(
                    self._file, context=self._context, client_configuration=loaded
                )
                self._user = self._user_named()
        except (ConfigException, OSError, ValueError, KeyError, TypeError) as error:
            # The loader's own words may repeat what stands in the file.
            where = "a pod" if self._context is None else f"{_files(self._file)}, kubeconfig"
            raise ConfigurationError(
                f"{self._named} cannot be read from {where}: {type(error).__name__}; expected a "
                "context with a cluster and a user"
            ) from None
        self._check(loaded)
        return loaded

    def _user_named(self) -> str | None:
        contexts: Any = config.list_kube_config_contexts(self._file)[0]
        chosen = next(each for each in contexts if each["name"] == self._context)
        return chosen["context"].get("user")

    def _check(self, loaded: Any) -> None:
        if self._user and not loaded.api_key.get(_TOKEN) and not loaded.cert_file:
            raise ConfigurationError(
                f"{self._named} names a user and gives neither a token nor a certificate; expected "
                "one. Run its credential plugin by hand to see why it fails"
            )
        if not loaded.verify_ssl:
            raise ConfigurationError(
                f"{self._named} asks to leave the server's certificate unchecked; expected "
                "certificate-authority in its cluster"
            )
        if self._expected is not None and origin_of(loaded.host) != origin_of(self._expected):
            raise ConfigurationError(
                f"{self._named} leads to {origin_of(loaded.host)}; expected "
                f"{origin_of(self._expected)}, as the scan file says"
            )


def _files(path: str) -> str:
    return ", ".join(str(Path(each).expanduser()) for each in path.split(":") if each)


def _whole_path(path: str) -> str:
    return str(Path(path).expanduser().absolute())
