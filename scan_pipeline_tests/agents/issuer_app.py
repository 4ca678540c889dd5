"""An OAuth issuer: its metadata, its keys, and tokens for clients with a secret."""

import base64
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

SHARED = b"shared-secret-of-the-key-set-of-the-tests"
SHARED_AS_JWK = base64.urlsafe_b64encode(SHARED).rstrip(b"=").decode()
SECRET = "client-secret-of-the-tests"


@dataclass
class Issuer:
    """Signs what it is told to; `url` is known once it is served.

    Attributes:
        url: its identifier.
        audience: what tokens are for.
        asked: paths that were asked for.
        down: whether it answers 503.
        said: what its metadata says otherwise.
    """

    url: str = ""
    audience: str = ""
    asked: list[str] = field(default_factory=list)
    down: bool = False
    said: dict[str, str] = field(default_factory=dict)
    rsa_key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    ec_key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def token(
        self,
        subject: str = "ana@corp",
        *,
        headers: dict[str, Any] | None = None,
        key: Any = None,
        algorithm: str = "RS256",
        **claims: Any,
    ) -> str:
        """Return a token; a claim or header of None is left out."""
        told = {"kid": "rsa-1", "typ": "at+jwt", **(headers or {})}
        now = int(time.time())
        said = {
            "iss": self.url,
            "aud": self.audience,
            "sub": subject,
            "iat": now,
            "exp": now + 300,
            "scope": "scan:read",
            **claims,
        }
        return jwt.encode(
            {name: value for name, value in said.items() if value is not None},
            self.rsa_key if key is None else key,
            algorithm=algorithm,
            headers={name: value for name, value in told.items() if value is not None},
        )

    def jwks(self) -> dict[str, Any]:
        """Return the public keys."""
        rsa_jwk = RSAAlgorithm.to_jwk(self.rsa_key.public_key(), as_dict=True)
        ec_jwk = ECAlgorithm.to_jwk(self.ec_key.public_key(), as_dict=True)
        return {
            "keys": [
                {**rsa_jwk, "kid": "rsa-1", "use": "sig", "alg": "RS256"},
                {**ec_jwk, "kid": "ec-1", "use": "sig"},
                {**rsa_jwk, "kid": "enc-1", "use": "enc"},
                {"kty": "oct", "k": SHARED_AS_JWK, "kid": "oct-1"},
            ]
        }

    def app(self) -> Starlette:
        """Return its application."""

        async def answer(request: Request) -> JSONResponse:
            path = request.url.path
            self.asked.append(path)
            if self.down:
                return JSONResponse({}, status_code=503)
            if path == "/jwks":
                return JSONResponse(self.jwks())
            if path == "/token":
                return await self._granted(request)
            facts = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "token_endpoint": f"{self.url}/token",
                "authorization_endpoint": f"{self.url}/authorize",
                "response_types_supported": ["code"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }
            return JSONResponse(facts | self.said)

        paths = ("/jwks", "/token", "/.well-known/oauth-authorization-server")
        return Starlette(routes=[Route(path, answer, methods=["GET", "POST"]) for path in paths])

    async def _granted(self, request: Request) -> JSONResponse:
        form = await request.form()
        said = request.headers.get("authorization", "").removeprefix("Basic ")
        # Both stand there escaped (RFC 6749, section 2.3.1).
        client, secret = map(unquote, base64.b64decode(said).decode().split(":"))
        if form.get("grant_type") != "client_credentials" or secret != SECRET:
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        token = self.token(client, aud=str(form.get("resource")), client_id=client)
        return JSONResponse({"access_token": token, "token_type": "Bearer"})
