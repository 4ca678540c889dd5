"""Where alerts go: the `[tool.scan_pipeline.alerts]` table of the project's pyproject.toml."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, with_config

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.sources.secrets import SecretRef
from scan_pipeline.store.project import Project, refusals

WHERE = "[tool.scan_pipeline.alerts]"

_LINE = r"^[^\x00-\x1f\x7f]+$"

_Text = Annotated[str, Field(strict=True, pattern=_LINE)]
_Address = Annotated[
    str, Field(strict=True, pattern=r"^[^@\s\x00-\x1f,;<>]+@[^@\s\x00-\x1f,;<>]+$")
]

Security: TypeAlias = Literal["starttls", "tls", "none"]


def _some(to: list[str]) -> list[str]:
    if not to:
        raise ValueError("expected at least one address")
    return to


@with_config(ConfigDict(extra="forbid"))  # a table is a dict, which a strict record refuses
@record
class MailSettings:
    """A mail server and who hears from it.

    Attributes:
        host: name of the server.
        port: its port; by default 587 with `starttls`, 465 with `tls`, 25 with `none`.
        security: how the connection is sealed; `none` sends no password.
        sender: address that the mails are from (`from` in the file).
        to: addresses that get them.
        user: login name, None for a server that asks for none.
        password: reference to its password.
    """

    host: _Text
    sender: Annotated[_Address, Field(alias="from")]
    to: Annotated[list[_Address], AfterValidator(_some)]
    port: Annotated[int, Field(strict=True, ge=1, le=65535)] | None = None
    security: Security = "starttls"
    user: _Text | None = None
    password: SecretRef | None = None

    def __post_init__(self) -> None:
        if (self.user is None) != (self.password is None):
            raise ConfigurationError(
                f"{WHERE} email: found one of user and password; expected both or neither"
            )
        if self.password is not None and self.security == "none":
            raise ConfigurationError(
                f"{WHERE} email: found a password and security = 'none', which would send it for "
                "all to read; expected starttls or tls"
            )


@with_config(ConfigDict(extra="forbid"))
@record
class AlertSettings:
    """Where alerts go; nowhere by default.

    Attributes:
        webhook: reference to the address of an incoming webhook: who knows one may post to it.
        email: a mail server.
    """

    webhook: SecretRef | None = None
    email: MailSettings | None = None


def alert_settings(project: Project) -> AlertSettings:
    """Return where a project's alerts go.

    Raises:
        ConfigurationError: the table has unknown members or wrong values; shows no value.
    """
    return parse_settings(project.alerts)


def parse_settings(raw: Mapping[str, Any]) -> AlertSettings:
    """Read the table as it stands in the file; raises as `alert_settings`."""
    try:
        return adapter(AlertSettings).validate_python(dict(raw))
    except ValidationError as error:
        raise ConfigurationError(
            f"{WHERE}: {refusals(error)}; expected webhook = {{env = NAME}}, and email with host, "
            "from, to, port, security, user and password"
        ) from error
    except ConfigurationError:
        raise
    except ContractError as error:
        raise ConfigurationError(f"{WHERE}: {error}") from error
