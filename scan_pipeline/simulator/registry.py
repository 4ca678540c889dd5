"""The registry: a source whose population is known, and which does what its script says."""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from threading import Lock
from typing import Final, TypeAlias

from scan_pipeline.simulator.admission import PageRequest, check_binding, expired, pin_of
from scan_pipeline.simulator.answer_faults import Failing, MemberDoubled
from scan_pipeline.simulator.answers import Answer, RequestRefusedError, json_answer, refusal
from scan_pipeline.simulator.bodies import page_body
from scan_pipeline.simulator.collection import Collection, Revision, View
from scan_pipeline.simulator.cursors import Cursor, CursorCodec
from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.damage import damaged_answer
from scan_pipeline.simulator.delta import feeds
from scan_pipeline.simulator.faults import Fault, PrincipalNarrowed, SnapshotExpired
from scan_pipeline.simulator.mutations import Mutation
from scan_pipeline.simulator.pages import (
    first_of,
    honest_view,
    is_last_page,
    page_content,
)
from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.principals import authenticate
from scan_pipeline.simulator.query import Params, Query, parse_counts, parse_list
from scan_pipeline.simulator.rows import CollectionName
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.served import Served, ServedPage
from scan_pipeline.simulator.snapshots import Snapshot
from scan_pipeline.simulator.support_cases import SUPPORT_CASES

Clock: TypeAlias = Callable[[], datetime]

SNAPSHOT_LIFETIME_S: Final = 3_600
"""How long a snapshot can be read after it was pinned, in seconds."""

SAMPLE_SECRET: Final = b"registry sample secret, public"
"""Seals the cursors of every registry that is given no other: they outlive its process."""


def utc_now() -> datetime:
    """Return the moment, aware and in UTC."""
    return datetime.now(UTC)


def fresh_nonce() -> str:
    """Return text that no other walk has."""
    return secrets.token_hex(6)


class Registry:
    """Answers requests one at a time; what it answers depends on its arguments and their order.

    What it must remember fits a snapshot id or a cursor, so that a new process accepts those of
    an earlier one. Only attempts, consumed cursors and a narrowed principal are kept in memory.

    Attributes:
        served: what it has answered so far.
        clock: what it takes for the time.
        script: what happens to it.
    """

    def __init__(
        self,
        *,
        size: int = CUSTOMERS,
        cases: int = SUPPORT_CASES,
        script: Script | None = None,
        clock: Clock = utc_now,
        secret: bytes = SAMPLE_SECRET,
        snapshot_lifetime_s: int = SNAPSHOT_LIFETIME_S,
        nonces: Callable[[], str] = fresh_nonce,
    ) -> None:
        """Fill a registry.

        Args:
            size: how many customers, from 0.
            cases: how many support cases, from 0.
            script: mutations and faults; None for none.
            clock: returns an aware moment.
            secret: seals the cursors.
            snapshot_lifetime_s: seconds a snapshot can be read.
            nonces: gives text that differs each time.
        """
        self.served = Served()
        self.clock = clock
        self.script = script or Script()
        self._lock = Lock()
        self._codec = CursorCodec(secret)
        self._lifetime = timedelta(seconds=snapshot_lifetime_s)
        self._nonces = nonces
        self._attempts: Counter[tuple[CollectionName, int]] = Counter()
        self._consumed: set[str] = set()
        self._narrowed: dict[str, PrincipalNarrowed] = {}
        sizes: dict[CollectionName, int] = {"customers": size, "support_cases": cases}
        self._collections: dict[CollectionName, Collection] = {
            name: Collection(
                name,
                rows=population(name, rows),
                scripted=tuple(m for m in self.script.mutations if m.collection == name),
            )
            for name, rows in sizes.items()
        }
        self._feeds = feeds(self._collections, script=self.script, clock=self.clock)

    def mutate(self, mutation: Mutation) -> None:
        """Let a mutation happen now, whatever page it names.

        Raises:
            ContractError: a row to insert is there already, or a row to change is not.
        """
        with self._lock:
            self._collections[mutation.collection].apply(mutation)

    def list_page(
        self, collection: CollectionName, *, params: Params, authorization: str | None
    ) -> Answer:
        """Answer a page request."""
        return self._answered(lambda: self._list_page(collection, params, authorization))

    def partition_counts(
        self, collection: CollectionName, *, params: Params, authorization: str | None
    ) -> Answer:
        """Answer the exact counts by one field, for the same filters and pin as a list."""
        return self._answered(lambda: self._partition_counts(collection, params, authorization))

    def high_water_mark(self, collection: CollectionName, *, authorization: str | None) -> Answer:
        """Answer the newest number of the append-only sequence, as it stands now."""
        return self._answered(lambda: self._high_water_mark(collection, authorization))

    def change_token(self, collection: CollectionName, *, authorization: str | None) -> Answer:
        """Answer a token that every write moves and that never comes back."""
        return self._answered(lambda: self._change_token(collection, authorization))

    def delta(
        self, collection: CollectionName, *, params: Params, authorization: str | None
    ) -> Answer:
        """Answer a page of a baseline or of a round of changes."""
        return self._answered(lambda: self._feeds[collection].page(params, authorization))

    def identity(self, *, authorization: str | None) -> Answer:
        """Answer who the token's principal is."""
        return self._answered(lambda: self._identity(authorization))

    def _answered(self, work: Callable[[], Answer]) -> Answer:
        with self._lock:
            try:
                return work()
            except RequestRefusedError as error:
                self.served.refused[error.code] += 1
                return refusal(error)

    def _list_page(self, name: CollectionName, params: Params, authorization: str | None) -> Answer:
        principal = authenticate(authorization)
        query = parse_list(name, params, principal)
        cursor = self._codec.open(query.cursor) if query.cursor is not None else None
        collection = self._collections[name]
        page = cursor.page if cursor is not None else 1
        collection.let_happen(through_page=page - 1)
        request = PageRequest(
            query=query,
            principal=principal,
            snapshot=self._pin(query, cursor),
            page=page,
            after=cursor.after if cursor is not None else None,
            nonce=self._nonce(cursor),
        )
        check_binding(request, cursor)
        self._attempts[name, page] += 1
        answer, rows = self._page(request, collection)
        collection.let_happen(through_page=page if answer.status == HTTPStatus.OK else page - 1)
        self._remember(request, answer, rows)
        return answer

    def _page(self, request: PageRequest, collection: Collection) -> tuple[Answer, int]:
        scripted = tuple(f for f in self.script.faults if f.collection == collection.name)
        faults = self._striking(request, scripted, honest_view(request, collection))
        if (failing := first_of(faults, Failing)) is not None:
            return self._failure(failing), 0
        try:
            self._check_usable(request, faults)
        except RequestRefusedError as error:
            self.served.refused[error.code] += 1
            return refusal(error), 0
        if self.script.cursors == "single_use" and request.query.cursor is not None:
            self._consumed.add(request.query.cursor)
        if (narrowing := first_of(faults, PrincipalNarrowed)) is not None:
            self._narrowed[request.principal.name] = narrowing
        content = page_content(
            request,
            collection=collection,
            faults=faults,
            scripted=scripted,
            narrowed=self._narrowed.get(request.principal.name),
            codec=self._codec,
            nonces=self._nonces,
        )
        body = page_body(content, doubled=first_of(faults, MemberDoubled))
        answer = damaged_answer(Answer(status=200, body=body), faults=faults)
        return answer, len(content.items)

    def _striking(
        self, request: PageRequest, scripted: tuple[Fault, ...], view: View
    ) -> tuple[Fault, ...]:
        if not scripted:
            return ()
        is_last = is_last_page(request, view)
        attempt = self._attempts[request.query.collection, request.page]
        return tuple(
            fault
            for fault in scripted
            if fault.strikes(page=request.page, is_last=is_last, attempt=attempt)
        )

    def _check_usable(self, request: PageRequest, faults: tuple[Fault, ...]) -> None:
        if first_of(faults, SnapshotExpired) is not None:
            raise expired()
        if request.query.cursor in self._consumed:
            raise RequestRefusedError(
                self.script.consumed_status, "cursor_consumed", "this cursor was used before"
            )

    def _failure(self, failing: Failing) -> Answer:
        headers: dict[str, str] = {}
        if failing.retry_after_s is not None:
            until = self.clock().astimezone(UTC) + timedelta(seconds=failing.retry_after_s)
            seconds = failing.retry_after_form == "seconds"
            headers["retry-after"] = (
                str(failing.retry_after_s) if seconds else format_datetime(until, usegmt=True)
            )
        phrase = HTTPStatus(failing.status).phrase
        code = failing.code or phrase.lower().replace(" ", "_")
        self.served.refused[code] += 1
        return refusal(RequestRefusedError(failing.status, code, phrase, headers=headers))

    def _nonce(self, cursor: Cursor | None) -> str:
        if cursor is not None:
            return cursor.nonce
        return self._nonces() if self.script.walk_nonces else ""

    def _pin(self, query: Query, cursor: Cursor | None) -> Snapshot | None:
        return pin_of(
            query,
            cursor,
            collection=self._collections[query.collection],
            now=self.clock(),
            lifetime=self._lifetime,
        )

    def _remember(self, request: PageRequest, answer: Answer, rows: int) -> None:
        query = request.query
        if answer.status == HTTPStatus.OK and query.cursor is None and query.snapshot_id is None:
            self.served.start_walk(query.collection)
        self.served.pages.append(
            ServedPage(
                collection=query.collection,
                walk=self.served.walks(query.collection),
                page=request.page,
                attempt=self._attempts[query.collection, request.page],
                principal=request.principal.name,
                cursor=query.cursor,
                snapshot_id=request.snapshot.text if request.snapshot is not None else None,
                status=answer.status,
                rows=rows,
            )
        )

    def _partition_counts(
        self, name: CollectionName, params: Params, authorization: str | None
    ) -> Answer:
        principal = authenticate(authorization)
        by, query = parse_counts(name, params, principal)
        snapshot = self._pin(query, None)
        selection = query.selection
        narrowed = self._narrowed.get(principal.name)
        if narrowed is not None and narrowed.count == "follows" and selection.tenant is None:
            selection = replace(selection, tenant=narrowed.tenant)
        view = self._revision(name, snapshot).view(selection)
        counts = Counter(getattr(row.traits, by) for row in view.rows)
        return json_answer(
            {
                "by": by,
                "partitions": [
                    {"value": value, "count": counts[value]} for value in sorted(counts)
                ],
                "collection": {
                    "snapshot_id": snapshot.text if snapshot is not None else None,
                    "expected_count": len(view),
                },
            }
        )

    def _high_water_mark(self, name: CollectionName, authorization: str | None) -> Answer:
        authenticate(authorization)
        return json_answer({"high_water_mark": self._collections[name].head.high_water_mark})

    def _change_token(self, name: CollectionName, authorization: str | None) -> Answer:
        authenticate(authorization)
        return json_answer({"change_token": f"{name}@r{self._collections[name].head.number}"})

    def _identity(self, authorization: str | None) -> Answer:
        principal = authenticate(authorization)
        self.served.identity_reads += 1
        narrowed = self._narrowed.get(principal.name)
        told = narrowed is not None and narrowed.identity == "told"
        tenant = narrowed.tenant if narrowed is not None and told else principal.tenant
        return json_answer({"principal": principal.name, "tenant": tenant})

    def _revision(self, name: CollectionName, snapshot: Snapshot | None) -> Revision:
        collection = self._collections[name]
        pinned = snapshot and collection.revision(snapshot.revision)
        return pinned or collection.head
