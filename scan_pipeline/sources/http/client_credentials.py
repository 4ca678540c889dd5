"""Tokens of the client credentials grant: fetched when needed, renewed before they end.

The request and the answer's rules are oauthlib's (`BackendApplicationClient`, 4.0), which leaves
the sending to us, so that proxy, CA, limits and retries are those of the walk. RFC 6749, sections
2.3.1, 4.4 and 5, and RFC 6750, section 2.1, read 2026-11-30.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote_plus

from scan_pipeline.core.errors import AccessRefusedError, ProtocolError
from scan_pipeline.core.value import record
from scan_pipeline.sources.auth import OAuth2ClientCredentials
from scan_pipeline.sources.extras import needs_extra
from scan_pipeline.sources.http.addresses import shown
from scan_pipeline.sources.http.exchange import Call
from scan_pipeline.sources.http.responses import Answer, BodyMatch, ResponseClass
from scan_pipeline.sources.http.transport import Transport
from scan_pipeline.sources.surroundings import Surroundings

EARLY: Final = timedelta(seconds=30)
"""How long before its end a token is renewed, at most; a tenth of its life where that is less."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")

REFUSALS: Final = tuple(
    ResponseClass(status=400, body=BodyMatch(at=("error",), equals=error), means="refused")
    for error in ("invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope")
)
"""Errors of RFC 6749, section 5.2, that say who we are is not enough."""


@record
class _Token:
    """A token as it is held; its text shows nowhere."""

    headers: Mapping[str, str]
    renew_at: datetime | None

    def __repr__(self) -> str:
        return f"_Token(renew_at={self.renew_at!r})"


class ClientCredentials:
    """Makes the bearer header of a token that is fetched in our own name.

    Args:
        facts: where tokens are had, and who we are there.
        surroundings: the world around.
        transport: to the token endpoint and nowhere else.
    """

    def __init__(
        self, facts: OAuth2ClientCredentials, surroundings: Surroundings, *, transport: Transport
    ) -> None:
        self._facts, self._environ = facts, surroundings.environ
        self._clock, self._transport = surroundings.clock, transport
        self._token: _Token | None = None

    def headers(self, worn_out: bool) -> Mapping[str, str]:  # the shape is MakeHeaders
        """Return the header, of a new token where there is none, it ends soon or has worn out.

        Raises:
            AccessRefusedError: the endpoint refuses us, or grants less than was asked.
            SourceUnavailableError: it does not answer.
            ProtocolError: it answers with no token.
        """
        token = self._token
        due = token is None or (token.renew_at is not None and self._clock() >= token.renew_at)
        if token is None or due or worn_out:
            token = self._fetched()
            self._token = token
        return token.headers

    def _fetched(self) -> _Token:
        asked_at = self._clock()
        sent = self._transport.send(self._call(), read=self._read, refused=lambda *_: None)
        lifetime = sent.value.get("expires_in")
        life = None if lifetime is None else timedelta(seconds=int(lifetime))
        return _Token(
            headers={"authorization": f"Bearer {sent.value['access_token']}"},
            renew_at=None if life is None else asked_at + life - min(EARLY, life / 10),
        )

    def _call(self) -> Call:
        facts, client = self._facts, _client(self._facts.client_id)
        extra: dict[str, Any] = {} if facts.audience is None else {"audience": facts.audience}
        if facts.send_as == "client_secret_post":
            extra |= {
                "include_client_id": True,
                "client_secret": facts.client_secret.resolve(self._environ),
            }
        scope = None if facts.scope is None else facts.scope.split()
        return Call(
            url=facts.token_url,
            headers=(
                ("content-type", "application/x-www-form-urlencoded"),
                ("accept", "application/json"),
            ),
            method="POST",
            content=client.prepare_request_body(scope=scope, **extra).encode(),
        )

    def _read(self, answer: Answer) -> dict[str, Any]:
        """Read a token; of an answer that is none, nothing is shown."""
        from oauthlib.oauth2 import OAuth2Error  # noqa: PLC0415  # an extra

        where = shown(self._facts.token_url)
        try:
            client = _client(self._facts.client_id)
            token = dict(client.parse_request_body_response(answer.body.decode()))
        except (OAuth2Error, ValueError, TypeError, KeyError, AttributeError):
            raise ProtocolError(
                "reported_invalid", f"{where} answered with no token; expected RFC 6749's answer"
            ) from None
        text, kind = token.get("access_token"), str(token.get("token_type", "")).lower()
        if kind != "bearer" or not isinstance(text, str) or not _TOKEN.fullmatch(text):
            raise ProtocolError(
                "reported_invalid", f"{where} answered with no bearer token; expected one"
            )
        granted = token.get("scope")
        missing = set((self._facts.scope or "").split()) - set(granted or ())
        if granted is not None and missing:
            raise AccessRefusedError(
                f"{where} granted less than was asked: not {', '.join(sorted(missing))}; expected "
                "the scope that the scan file names, for less would show another population"
            )
        return token


def client_header(facts: OAuth2ClientCredentials, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header that proves who we are to the token endpoint; none where the form does.

    RFC 6749, section 2.3.1: both parts are form-encoded before they are put together.

    Raises:
        ConfigurationError: the secret is missing.
    """
    if facts.send_as != "client_secret_basic":
        return {}
    secret = quote_plus(facts.client_secret.resolve(environ))
    pair = f"{quote_plus(facts.client_id)}:{secret}"
    return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _client(client_id: str) -> Any:
    with needs_extra("oauth2", "auth.oauth2_client_credentials"):
        from oauthlib.oauth2 import BackendApplicationClient  # noqa: PLC0415  # an extra
    return BackendApplicationClient(client_id)
