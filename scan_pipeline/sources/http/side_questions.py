"""What is asked beside the pages: who we are, the bound, the change token, counts by partition."""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.sources.http.addresses import shown
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.request import JSON, Added
from scan_pipeline.sources.http.responses import Answer
from scan_pipeline.sources.http.transport import Call, Refused, Transport, read_json

T = TypeVar("T")


class SideQuestions:
    """Asks them, over the transport of the walk.

    Args:
        facts: the collection.
        transport: what carries the requests.
        refused: told of every answer that was refused.
    """

    def __init__(self, facts: HttpFacts, transport: Transport, *, refused: Refused) -> None:
        self._facts, self._transport, self._refused = facts, transport, refused

    def identity(self) -> tuple[str | None, str | None]:
        """Return principal and tenant as the source reports them, None where it was not asked."""
        facts = self._facts.identity
        if facts is None:
            return None, None
        principal, tenant = principal_in(
            self._send(facts.url, read=read_json, body=facts.body),
            at=facts.at,
            tenant_at=facts.tenant_at,
            where=facts.url,
        )
        if facts.expect is not None and principal != facts.expect:
            raise ProtocolError(
                "principal_changed",
                f"the source sees {principal}; expected {facts.expect}, as the scan file declares. "
                "Give the scan that principal's credentials",
            )
        return principal, tenant

    def high_water_mark(self) -> str | None:
        """Return the bound of the walk, None where none is declared."""
        bound = self._facts.high_water_mark
        return None if bound is None else bound_in(self._get(bound.url), bound.at, where=bound.url)

    def change_token(self) -> tuple[str | None, bool]:
        """Return the source's token of its state, None where none is declared; is it a number?"""
        facts = self._facts.change_token
        if facts is None:
            return None, False
        if facts.header is None:
            around = self._get(facts.url)
            token = bound_in(around, facts.at, where=facts.url)
            return token, isinstance(value_at(around, facts.at), int)
        headers = self._send(facts.url, read=lambda answer: answer.headers)
        return strong_token(headers.get(facts.header), header=facts.header, where=facts.url), False

    def partition_counts(self, held_still: Iterable[Added]) -> dict[str, int] | None:
        """Return the source's counts by partition, under the same pin and bound."""
        facts = self._facts.partition_counts
        if facts is None:
            return None
        held = {each.name: str(each.value) for each in held_still}
        around = self._get(facts.url, {**self._facts.params, **held})
        return counts_in(around, at=facts.at, value=facts.value, count=facts.count)

    def _get(self, url: str, params: Mapping[str, str] | None = None) -> Any:
        return self._send(url, read=read_json, params=params)

    def _send(
        self,
        url: str,
        *,
        read: Callable[[Answer], T],
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> T:
        headers = dict(self._facts.headers)
        if body is not None and not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = JSON
        call = Call(
            url=url,
            params=tuple((params or {}).items()),
            headers=tuple(headers.items()),
            method="GET" if body is None else "POST",
            content=None if body is None else canonical_json(dict(body)),
            success=(HTTPStatus.OK,) if body is None else (HTTPStatus.OK, HTTPStatus.CREATED),
        )

        def fresh(answer: Answer) -> T:
            if answer.from_cache:
                raise ProtocolError(
                    "answer_from_cache",
                    f"the answer of {shown(url)} was kept by a cache on the way; expected what the "
                    "source says now",
                )
            return read(answer)

        return self._transport.send(call, read=fresh, refused=self._refused).value


MAX_NAME = 256
"""Longest name of a principal, in characters; it stands in one line of the receipt."""


def principal_in(
    around: Any, *, at: FieldPath, tenant_at: FieldPath | None, where: str
) -> tuple[str, str | None]:
    """Read principal and tenant.

    Args:
        around: the parsed answer.
        at: where the principal stands.
        tenant_at: where the tenant stands, None where there is none.
        where: what was asked, for messages.

    Raises:
        ProtocolError: `reported_invalid`, there is no principal.
    """
    principal = value_at(around, at)
    tenant = ABSENT if tenant_at is None else value_at(around, tenant_at)
    if not isinstance(principal, str) or not principal:
        raise ProtocolError("reported_invalid", f"no principal at {'.'.join(at)} of {where}")
    if not principal.isprintable() or len(principal) > MAX_NAME:
        raise ProtocolError(
            "reported_invalid", f"the principal of {where} is no printable name of a line"
        )
    if tenant_at is None or tenant is None:
        return principal, None
    if isinstance(tenant, bool) or not isinstance(tenant, str | int) or tenant == "":
        raise ProtocolError("reported_invalid", f"no tenant at {'.'.join(tenant_at)} of {where}")
    return principal, str(tenant)


def bound_in(around: Any, at: FieldPath, *, where: str) -> str:
    """Read an upper bound.

    Raises:
        ProtocolError: `reported_invalid`, there is none.
    """
    value = value_at(around, at)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ProtocolError("reported_invalid", f"no value at {'.'.join(at)} of {where}")
    return str(value)


def strong_token(value: str | None, *, header: str, where: str) -> str:
    """Read a change token from a header.

    RFC 9110, section 8.8.1 (excerpt read 2026-11-30): a validator marked `W/` need not move with
    every change of what it stands for.

    Raises:
        ProtocolError: `reported_invalid`, there is none, or it is marked weak.
    """
    token = "" if value is None else value.strip()
    if not token:
        raise ProtocolError("reported_invalid", f"no header {header} in the answer of {where}")
    if token.startswith("W/"):
        raise ProtocolError(
            "reported_invalid",
            f"the header {header} of {where} holds a weak validator, which need not move with "
            "every write; expected a strong one",
        )
    return token


def counts_in(
    around: Any, *, at: FieldPath, value: str | None, count: str | None
) -> dict[str, int]:
    """Read counts by partition.

    Args:
        around: the parsed answer.
        at: where an object from value to number stands, or a list of rows.
        value: member of a row that names the partition.
        count: member of a row that counts it.

    Raises:
        ProtocolError: `reported_invalid`, there are none.
    """
    counts = value_at(around, at)
    if isinstance(counts, list) and value is not None and count is not None:
        if not all(
            isinstance(row, dict) and isinstance(row.get(value), str | int) for row in counts
        ):
            raise ProtocolError("reported_invalid", f"a row at {'.'.join(at)} names no partition")
        named = [str(row[value]) for row in counts]
        if len(set(named)) < len(named):
            raise ProtocolError(
                "reported_invalid", f"a partition is counted twice at {'.'.join(at)}"
            )
        counts = {str(row[value]): row.get(count) for row in counts}
    found: dict[str, int] = {}
    for partition, number in counts.items() if isinstance(counts, dict) else [(None, None)]:
        if isinstance(number, bool) or not isinstance(number, int):
            raise ProtocolError("reported_invalid", f"no counts by partition at {'.'.join(at)}")
        found[str(partition)] = number
    return found
