"""What is asked beside the pages: who we are, the bound, and counts by partition."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from scan_pipeline.core.contract import FieldPath
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.sources.envelope import ABSENT, value_at
from scan_pipeline.sources.http_facts import HttpFacts
from scan_pipeline.sources.http_request import Added
from scan_pipeline.sources.transport import Call, Transport, read_json


class SideQuestions:
    """Asks them, over the transport of the walk.

    Args:
        facts: the collection.
        transport: what carries the requests.
    """

    def __init__(self, facts: HttpFacts, transport: Transport) -> None:
        self._facts, self._transport = facts, transport

    def identity(self) -> tuple[str | None, str | None]:
        """Return principal and tenant as the source reports them, None where it was not asked."""
        facts = self._facts.identity
        if facts is None:
            return None, None
        around = self._get(facts.url)
        principal = value_at(around, facts.at)
        tenant = ABSENT if facts.tenant_at is None else value_at(around, facts.tenant_at)
        if not isinstance(principal, str) or not principal:
            raise ProtocolError(
                "reported_invalid", f"no principal at {'.'.join(facts.at)} of {facts.url}"
            )
        return principal, tenant if isinstance(tenant, str) else None

    def high_water_mark(self) -> str | None:
        """Return the bound of the walk, None where none is declared."""
        bound = self._facts.high_water_mark
        return None if bound is None else self._text(bound.url, bound.at)

    def partition_counts(self, held_still: Iterable[Added]) -> dict[str, int] | None:
        """Return the source's counts by partition, under the same pin and bound."""
        facts = self._facts.partition_counts
        if facts is None:
            return None
        held = {each.name: str(each.value) for each in held_still}
        counts = value_at(self._get(facts.url, {**self._facts.params, **held}), facts.at)
        if isinstance(counts, list) and facts.value is not None and facts.count is not None:
            rows = [row for row in counts if isinstance(row, dict)]
            counts = {row.get(facts.value): row.get(facts.count) for row in rows}
        found: dict[str, int] = {}
        for value, number in counts.items() if isinstance(counts, dict) else [(None, None)]:
            if isinstance(number, bool) or not isinstance(number, int):
                raise ProtocolError(
                    "reported_invalid", f"no counts by partition at {'.'.join(facts.at)}"
                )
            found[str(value)] = number
        return found

    def _text(self, url: str, path: FieldPath) -> str:
        value = value_at(self._get(url), path)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise ProtocolError("reported_invalid", f"no value at {'.'.join(path)} of {url}")
        return str(value)

    def _get(self, url: str, params: Mapping[str, str] | None = None) -> Any:
        call = Call(
            url=url,
            params=tuple((params or {}).items()),
            headers=tuple(self._facts.headers.items()),
        )
        return self._transport.send(call, read=read_json, refused=_untold).value


def _untold(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
    """Leave refusals of side questions out of the walk's events."""
