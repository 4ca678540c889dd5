"""Who may read the registry: two principals with different views, and their sample tokens."""

from typing import Final

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import RequestRefusedError

AUDITOR_TOKEN: Final = "sample-token-auditor-all-tenants"  # noqa: S105 - public, part of the demo
ANALYST_TOKEN: Final = "sample-token-analyst-acme"  # noqa: S105 - public, part of the demo


@record
class Principal:
    """Who asks.

    Attributes:
        name: as the identity endpoint reports it.
        tenant: the only tenant this principal sees; None for all.
    """

    name: str
    tenant: str | None


AUDITOR: Final = Principal(name="auditor@registry.example", tenant=None)
ANALYST: Final = Principal(name="analyst@acme.example", tenant="acme")

_BY_TOKEN: Final = {AUDITOR_TOKEN: AUDITOR, ANALYST_TOKEN: ANALYST}


def authenticate(authorization: str | None) -> Principal:
    """Return the principal behind an `Authorization` header.

    Raises:
        RequestRefusedError: 401; there is no header, it is not a bearer token, or nobody's.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and token in _BY_TOKEN:
        return _BY_TOKEN[token]
    raise RequestRefusedError(
        401,
        "unauthenticated",
        "expected one of the sample tokens as 'Authorization: Bearer ...'",
        headers={"www-authenticate": 'Bearer realm="registry"'},
    )
