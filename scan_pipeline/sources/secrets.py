"""Secrets are named, never held: `{env: NAME}` or `{file: PATH}`, resolved when sending.

A reference is what contracts, logs and processes may carry. A refusal tells what was expected and
never what stood there, since what stands in the wrong place may be the secret itself.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import (
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
    with_config,
)

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.value import record

MAX_SECRET_BYTES: Final = 64 * 1024

_EXPECTED: Final = (
    "expected {env: NAME}, the name in capitals, digits and underscores, or {file: PATH}, exactly "
    "one of them; a secret itself never stands in a file of facts"
)


@with_config(ConfigDict(extra="forbid"))  # a mapping may come from YAML as well as from JSON
@record
class SecretRef:
    """Where a secret is to be had.

    Attributes:
        env: name of a variable. Capitals only (the form of POSIX.1-2017, Base Definitions 8.1),
            which also catches most tokens that were pasted in place of a name.
        file: path of a file that holds the secret and at most a line end.
    """

    env: Annotated[str, Field(strict=True, pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    file: Annotated[str, Field(strict=True, min_length=1)] | None = None

    def __post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise ContractError(f"a secret is named twice or not at all; {_EXPECTED}")

    def __repr__(self) -> str:
        named = f"env={self.env!r}" if self.env is not None else f"file={self.file!r}"
        return f"SecretRef({named})"

    @property
    def told(self) -> str:
        """The reference as a scan file has it, for messages."""
        return f"{{env: {self.env}}}" if self.env is not None else f"{{file: {self.file}}}"

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_without_showing(
        cls, raw: object, handler: ModelWrapValidatorHandler["SecretRef"]
    ) -> "SecretRef":
        """Keep pydantic's own error, which shows its input, from ever leaving."""
        try:
            return handler(raw)
        except ValidationError:
            pass
        found = "a text" if isinstance(raw, str) else "something else"
        raise ContractError(f"found {found} that names no secret; {_EXPECTED}")

    def resolve(self, environ: Mapping[str, str], *, base: Path | None = None) -> str:
        """Read the secret; call it where the request is built, and keep the result nowhere.

        One line end after the secret is dropped, since editors and `echo` put one there.

        Args:
            environ: the variables.
            base: folder that a relative file is relative to; None allows absolute ones only.

        Raises:
            ConfigurationError: missing, empty, or nothing that fits a header; never says what
                was read.
        """
        secret = self._from_file(base) if self.env is None else self._from_environ(environ)
        secret = secret.removesuffix("\n").removesuffix("\r")
        if not secret.strip():
            raise ConfigurationError(f"the secret {self.told} is empty; expected its value there")
        if re.search(r"[\x00-\x1f\x7f]", secret):
            raise ConfigurationError(
                f"the secret {self.told} holds a line break or control character; expected one line"
            )
        return secret

    def _from_environ(self, environ: Mapping[str, str]) -> str:
        if self.env is None or self.env not in environ:
            raise ConfigurationError(
                f"the secret {self.told} is missing; expected the variable {self.env} to be set "
                "for this process"
            )
        return environ[self.env]

    def _from_file(self, base: Path | None) -> str:
        path = Path(self.file or "")
        if base is None and not path.is_absolute():
            raise ConfigurationError(
                f"the secret {self.told} is a relative path and there is no folder it could be "
                "relative to; expected an absolute one"
            )
        path = path if base is None else base / path
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_SECRET_BYTES + 1)
        except OSError as error:
            raise ConfigurationError(
                f"the secret {self.told} cannot be read at {path}: {error.strerror}; expected a "
                "file with the secret"
            ) from error
        text = raw.decode(errors="replace")
        if len(raw) > MAX_SECRET_BYTES or "\ufffd" in text:
            raise ConfigurationError(
                f"the secret {self.told} at {path} is no text of at most {MAX_SECRET_BYTES} bytes; "
                "expected a file with only the secret"
            )
        return text


def parse_secret(raw: object) -> SecretRef:
    """Read a reference as it stands in a scan file.

    Raises:
        ContractError: neither `{env: NAME}` nor `{file: PATH}`; does not show what was found.
    """
    return TypeAdapter(SecretRef).validate_python(raw)
