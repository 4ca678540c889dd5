"""A server derived from a scan file: it answers the way the file says that its source does.

The facts say where records, continuation, count and version lie, how they are sent, and what says
the end. That is all a server needs that serves made-up records; and it can break each of them.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx2

from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import HttpCountFacts, HttpFacts
from scan_pipeline.sources.last_key import LastKeySource
from scan_pipeline.sources.next_link import NextLinkSource
from scan_pipeline.testing.facts_ends import FactsEnds, Told, link_to
from scan_pipeline.testing.facts_population import MARK, made_record
from scan_pipeline.testing.facts_requests import CURSOR, Asked, RequestReader
from scan_pipeline.testing.faults import Fault
from scan_pipeline.testing.paths import other_than, put

PRINCIPAL = "conformance"


@record
class Row:
    """One record, and whether it lies beyond the high-water mark."""

    made: dict[str, Any]
    beyond: bool = False


@record
class _Cut:
    """The part of a population that a page holds."""

    rows: Sequence[Row]
    start: int
    after: int
    of: int


class FactsServer(httpx2.BaseTransport):
    """Serves made-up records the way a scan file describes.

    Attributes:
        struck: whether the fault happened.

    Args:
        scan: the scan whose source is played.
        rows: the population, in order.
        size: most records of a page.
        fault: what befalls it.
    """

    def __init__(self, scan: Scan, *, rows: Sequence[Row], size: int, fault: Fault) -> None:
        facts = scan.source
        if not isinstance(facts, HttpFacts):
            raise TypeError(f"found {type(facts).__name__}; expected facts of a source over HTTP")
        self._scan, self._facts, self._size, self._fault = scan, facts, size, fault
        self._reader = RequestReader(facts, size=size)
        self.ends = FactsEnds(facts, variant=fault.variant)
        self._rows, self._moves_made = list(rows), 0
        self._versions: dict[str, list[Row]] = {}
        self._issued: dict[str, int] = {}
        self._used: set[str] = set()
        self._emptied: set[str] = set()
        self._asked: list[Asked] = []
        self._cuts: list[_Cut] = []
        self.struck = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        aside = self._aside(request)
        if aside is not None:
            return httpx2.Response(200, headers=self._state(), json=aside)
        wrong = self._reader.wrong(request)
        if wrong is not None:
            return httpx2.Response(400, json={"message": f"the walk changed its {wrong}"})
        asked = self._reader.read(request)
        self._asked.append(asked)
        now = self._fault.strikes and len(self._asked) == self._fault.page
        self.struck = self.struck or now
        if now and self._moves(asked):
            return self.expired()
        cut = self._cut(asked)
        if cut is None:
            return self.expired()
        self._cuts.append(cut)
        return self._answer(request, asked, cut, now=now)

    def is_page(self, request: httpx2.Request) -> bool:
        """Say whether a request asks for a page, and not for something beside."""
        return self._aside(request) is None

    def expired(self) -> httpx2.Response:
        """Say that the version or continuation is gone, the way the source documents it."""
        self._issued.clear()
        self._versions.clear()
        for each in self._facts.responses:
            if each.means == "expired":
                around = {} if each.body is None else put({}, each.body.at, each.body.equals)
                headers = {**dict.fromkeys(each.header_present, "1"), **each.header}
                return httpx2.Response(each.status, headers=headers, json=around)
        return httpx2.Response(410, json={"message": "gone"})

    def _moves(self, asked: Asked) -> bool:
        """Let rows come and go where the fault says so; say whether everything expired."""
        self._moves_made += self._fault.kind in ("rows_inserted", "rows_deleted")
        match self._fault.kind:
            case "expired":
                return True
            case "rows_inserted" if self._facts.high_water_mark is not None:
                self._rows.append(self._row(len(self._rows) + 1, beyond=True))
            case "rows_inserted":
                self._rows.insert(0, self._row(0))
            case "rows_deleted":
                del self._rows[0]
            case "pin_ignored":
                held = self._versions.get(asked.pin or "", self._rows)
                held.insert(0, self._row(0))
                held.pop()
            case _:
                pass
        return False

    def _row(self, number: int, *, beyond: bool = False) -> Row:
        return Row(made=made_record(self._scan, number, beyond=beyond), beyond=beyond)

    def _cut(self, asked: Asked) -> _Cut | None:
        """Return the part that a request asks for, None where its version or token is gone."""
        rows = self._rows
        if self._facts.snapshot is not None and asked.pin is not None:
            if asked.pin not in self._versions:
                return None
            rows = self._versions[asked.pin]
        if asked.bound is not None:
            rows = [each for each in rows if not each.beyond]
        start = asked.start or 0
        if asked.token is not None:
            if asked.token not in self._issued:
                return None
            start = self._issued[asked.token]
            if self._facts.continuation == "single_use" and asked.token in self._used:
                start += self._size  # its cursor moved on when it was used
            self._used.add(asked.token)
        if asked.after is not None:
            start = self._row_after(rows, asked.after)
        size = min(asked.size or self._size, self._size)
        part = rows[start : start + size]
        return _Cut(rows=part, start=start, after=start + len(part), of=len(rows))

    def _row_after(self, rows: Sequence[Row], after: tuple[str, ...]) -> int:
        facts = self._facts
        fields = [p.field for p in facts.next.after] if isinstance(facts, LastKeySource) else []

        def place(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(int(v) if str(v).isdigit() else str(v) for v in values)

        bound = place(after)
        places = (place([value_at(each.made, field) for field in fields]) for each in rows)
        return next((n for n, each in enumerate(places) if each > bound), len(rows))

    def _answer(
        self, request: httpx2.Request, asked: Asked, cut: _Cut, *, now: bool
    ) -> httpx2.Response:
        kind, number = self._fault.kind, len(self._asked)
        follows, more = cut.after, cut.after < cut.of
        more = more or (self.ends.by_empty_page and bool(cut.rows))
        if kind == "page_repeated" and number >= self._fault.page:
            cut, more = replace(cut, rows=self._cuts[self._fault.page - 2].rows), True
        if kind == "page_emptied" and now:
            self._emptied.add(asked.token or "-")  # it stays so: read again, it is the same page
        if kind == "page_emptied" and (now or (asked.token or "") in self._emptied):
            follows, more, cut = cut.start, True, replace(cut, rows=(), after=cut.start)
        token = self._issue(follows)
        if kind == "continuation_repeated" and now:
            token, more = asked.token or token, True
        if kind == "continuation_cycle" and now:
            token, more = self._asked[number - 2].token or token, True
        lies = kind if now and kind in ("signals_disagree", "continuation_missing") else None
        pages = -(-cut.of // self._size)
        pin = self._pin(asked)
        link = self._link(request, token, pin)
        told = Told(token=link, more=more, pages=pages, lies=lies)
        return self._written(cut, told, pin, now=now)

    def _written(self, cut: _Cut, told: Told, pin: str | None, *, now: bool) -> httpx2.Response:
        facts, headers = self._facts, dict[str, str]()
        around = self.ends.write({}, headers, told)
        around = self._with_count(around, headers, cut)
        if facts.success is not None:
            around = put(around, facts.success.at, facts.success.equals)
        if facts.snapshot is not None:
            around = put(around, facts.snapshot.at, self._named(pin))
        if now and self._fault.kind == "error_with_success":
            around = self._with_error(around)
            if not facts.records_at:  # the records are the body: the error stands in their place
                return httpx2.Response(200, headers=headers, json=around)
        records = [each.made for each in cut.rows]
        if facts.record_field is not None:
            records = [each[facts.record_field] for each in records]
        if facts.records_format != "json":
            return httpx2.Response(200, headers=headers, content=self._lines(records))
        path = facts.records_at
        if not records and facts.records_omitted_when_empty and path:
            there = value_at(around, path[:-1])
            around = put(around, path[:-1], {} if there is ABSENT else there)
        else:
            around = put(around, path, records)
        body = json.dumps(around).encode()
        told_as = {"content-type": "application/json", **headers}
        return httpx2.Response(200, headers=told_as, content=body)

    def _with_count(self, around: Any, headers: dict[str, str], cut: _Cut) -> Any:
        count = self._facts.count
        if count is None:
            return around
        left = max(cut.of - cut.after, 0)
        number = {"total": cut.of, "remaining": left, "page": len(cut.rows)}[count.means]
        if isinstance(count, HttpCountFacts) and count.header is not None:
            headers[count.header] = str(number)
            return around
        return put(around, count.at, number)

    def can_err(self) -> bool:
        """Say whether an answer can hold an error beside its records."""
        return self._facts.success is not None or self._error_at() is not None

    def _with_error(self, around: Any) -> Any:
        success, at = self._facts.success, self._error_at()
        if success is not None:
            around = put(around, success.at, other_than(success.equals))
        return around if at is None else put(around, at, {"message": "internal error"})

    def _error_at(self) -> FieldPath | None:
        records_at = self._facts.records_at
        if self._facts.records_format != "json":
            return None
        paths = (each for each in self._facts.errors_at if each != records_at[: len(each)])
        return next(paths, None)

    def _pin(self, asked: Asked) -> str | None:
        """Return the version that an answer is of; the first request of a walk begins one."""
        if self._facts.snapshot is None:
            return None
        if asked.pin is not None:
            return asked.pin
        pin = f"v{len(self._versions) + 1}"
        if asked.token is None and asked.start in (None, 0) and asked.after is None:
            self._versions.setdefault(pin, list(self._rows))
            return pin
        return f"v{len(self._versions)}"

    def _named(self, pin: str | None) -> str | None:
        later = len(self._asked) >= self._fault.page
        return f"{pin}-moved" if self._fault.kind == "pin_changed" and later else pin

    def _issue(self, start: int) -> str:
        token = f"token-{len(self._issued) + 1}-{start}"
        self._issued[token] = start
        return token

    def _link(self, request: httpx2.Request, token: str, pin: str | None) -> str:
        facts = self._facts
        if not isinstance(facts, NextLinkSource):
            return token
        held = {} if facts.snapshot is None or pin is None else {facts.snapshot.send_as: pin}
        return link_to(request, facts, {CURSOR: token, **held})

    def _aside(self, request: httpx2.Request) -> Any:
        """Answer what is asked beside the pages; None where a page is asked for."""
        facts, url = self._facts, request.url
        if facts.identity is not None and url == httpx2.URL(facts.identity.url):
            told = put({}, facts.identity.at, facts.identity.expect or PRINCIPAL)
            at = facts.identity.tenant_at
            return told if at is None else put(told, at, "tenant")
        mark = facts.high_water_mark
        if mark is not None and url == httpx2.URL(mark.url):
            return put({}, mark.at, MARK)
        state = facts.change_token
        if state is not None and url == httpx2.URL(state.url):
            return put({}, state.at, self._state_now) if state.at else {}
        counts = facts.partition_counts
        if counts is not None and url.path == httpx2.URL(counts.url).path:
            total = len(self._rows)
            if counts.value is None or counts.count is None:
                return put({}, counts.at, {"all": total})
            return put({}, counts.at, [{counts.value: "all", counts.count: total}])
        return None

    @property
    def _state_now(self) -> str:
        """The change token: it moves with every row that comes or goes."""
        return f"state-{self._moves_made}"

    def _state(self) -> dict[str, str]:
        state = self._facts.change_token
        named = None if state is None else state.header
        return {} if named is None else {named: self._state_now}

    def _lines(self, records: list[Any]) -> bytes:
        if self._facts.records_format == "json_lines":
            return b"\n".join(json.dumps(each).encode() for each in records)
        names = list(made_record(self._scan, 1))
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)
        return out.getvalue().encode()
