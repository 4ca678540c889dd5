"""How a source is told who we are."""

from collections.abc import Mapping

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import record
from scan_pipeline.sources.secrets import SecretRef


@record
class ApiKey:
    """A key in a header of its own."""

    header: str
    value: SecretRef


@record
class Auth:
    """Exactly one way to prove who we are; secrets stay references until a request is sent."""

    bearer: SecretRef | None = None
    api_key: ApiKey | None = None

    def __post_init__(self) -> None:
        if (self.bearer is None) == (self.api_key is None):
            raise ConfigurationError("auth needs exactly one of: bearer, api_key")

    @property
    def scheme(self) -> str:
        """Return the name of the way, without any secret."""
        return "bearer" if self.bearer is not None else "api_key"

    def principal_bytes(self, environ: Mapping[str, str]) -> bytes:
        """Return what identifies the principal: the secret itself, where nothing steadier does.

        Raises:
            ConfigurationError: the secret is missing or empty.
        """
        carried = sorted(self.headers(environ).items())
        return canonical_json([self.scheme, *([name, value] for name, value in carried)])

    def headers(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that carry the secret; call it when sending and not before.

        Raises:
            ConfigurationError: the secret is missing or empty.
        """
        if self.bearer is not None:
            return {"authorization": f"Bearer {self.bearer.resolve(environ)}"}
        if self.api_key is not None:
            return {self.api_key.header: self.api_key.value.resolve(environ)}
        return {}
