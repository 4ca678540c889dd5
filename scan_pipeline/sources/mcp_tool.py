"""The `mcp_tool` protocol: a collection behind a tool, or behind a list method, of an MCP server.

Facts from the Model Context Protocol, revision 2026-07-28 (modelcontextprotocol.io/specification,
read 2026-11-30):

- List methods page by an opaque cursor. A missing `nextCursor` is the end; an empty string is a
  cursor like any other (server/utilities/pagination). Before that revision a cursor lived no
  longer than its session.
- How a tool pages is its own matter, so a scan file declares it: by a cursor, by an offset, by a
  page number, or not at all.
- Calls of tools are cancelled by `notifications/cancelled` over stdio, by closing the answer's
  stream over HTTP (basic/patterns/cancellation); the SDK does either.

Of a tool that gives one answer and nothing that says whether it is whole (`pages: none` without
`whole_when`), what lies beyond the answer is unknown: the walk is interrupted at the source's
window, and what came are observed pages and nothing more. A count beside the answer does not heal
that by itself, and none does that is as long as the page was allowed to be: it may have been taken
from the page.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from scan_pipeline.core.canonical import canonical_json, digest_of, leaf_hashes
from scan_pipeline.core.errors import (
    ConfigurationError,
    ContinuationConsumedError,
    ProtocolError,
    SourceWindowError,
    TransientSourceError,
)
from scan_pipeline.core.page import Next, Opening, Page, Position, Refusal
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.scan import source_json
from scan_pipeline.sources.http.allowance import Allowance
from scan_pipeline.sources.http.reported import reported
from scan_pipeline.sources.http.resending import Resending
from scan_pipeline.sources.http.side_questions import bound_in, counts_in, principal_in
from scan_pipeline.sources.mcp.calls import McpCall, ServerRefusedError, ToolCall
from scan_pipeline.sources.mcp.content import content_of, page_of, records_of
from scan_pipeline.sources.mcp.facts import Arguments, McpToolSource
from scan_pipeline.sources.mcp.paging import Paging
from scan_pipeline.sources.mcp.refusals import (
    SESSION_GONE,
    bytes_of,
    understand_error_result,
    understand_refusal,
)
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

if TYPE_CHECKING:
    from scan_pipeline.sources.mcp.session import McpSession

REVISION = "mcp_tool/1"

Tell = Callable[[int | None, str, bytes, datetime], None]
"""Told of each refused answer: HTTP status, reason, SHA-256 of it, time."""


class McpTool(Source):
    """Walks an `McpToolSource`. Tokens are kept as canonical JSON, so that a number stays one."""

    def __init__(self, facts: McpToolSource, surroundings: Surroundings) -> None:
        self._facts, self._surroundings = facts, surroundings
        self._paging = Paging(facts)
        told = source_json(facts)
        self._frozen = {name: told[name] for name in McpToolSource.QUERY}
        self._allowance = Allowance(clock=surroundings.clock)
        self._resending = Resending(
            surroundings.retries, sleep=surroundings.sleep, allowance=self._allowance
        )
        self._session: McpSession | None = None
        self._given: tuple[int, set[str]] = (0, set())
        self.adapter = AdapterRevision(name="mcp_tool", revision=REVISION)

    @property
    def facts(self) -> McpToolSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._allowance.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within what is left of `limits.seconds`; see `Source.allow`.

        One call is bounded by `operation.retries.timeout` as a whole, which the SDK keeps.
        """
        self._allowance.grant(limit, used=used)

    def principal(self) -> bytes | None:
        """Return what the server is given of who asks: our credential, or its variables."""
        environ, server = self._surroundings.environ, self._facts.transport
        if server.http is not None:
            return server.http.auth and server.http.auth.principal_bytes(environ)
        given = server.stdio.env if server.stdio else {}
        told = {name: secret.resolve(environ) for name, secret in given.items()}
        return canonical_json(told) if told else None

    def opening(self) -> Opening:
        """Return identity and high-water mark."""
        bound = self._facts.high_water_mark
        principal, tenant = self._identity()
        mark = None
        if bound is not None:
            around = self._aside(bound.tool, bound.arguments)
            mark = bound_in(around, bound.at, where=bound.tool)
        return Opening(principal=principal, tenant=tenant, high_water_mark=mark)

    def closing(self, position: Position) -> Opening:
        """Return identity, and the source's counts by partition under the same pin."""
        principal, tenant = self._identity()
        counts, facts = None, self._facts.partition_counts
        if facts is not None:
            arguments = self._paging.held_still(facts.arguments, position)
            around = self._aside(facts.tool, arguments)
            counts = counts_in(around, at=facts.at, value=facts.value, count=facts.count)
        return Opening(principal=principal, tenant=tenant, partition_counts=counts)

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page; see `Source.fetch`.

        Raises:
            SourceWindowError: the tool gives one answer, and it was not said to be whole.
        """
        if self._facts.pages == "none" and position.token is not None:
            raise SourceWindowError(
                f"{self._facts.tool} gives one answer and did not say that it is whole; expected "
                "a fact under whole_when, or a tool that pages"
            )

        def tell(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
            refused(
                Refusal(position=position, status=status, reason=reason, body_digest=digest, at=at)
            )

        return self._resending.send(lambda attempt: self._fetch(position, attempt, tell))

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        return records_of(body, self._facts)

    def close(self) -> None:
        """End the session: the child process, or the connections."""
        if self._session is not None:
            self._session.close()

    def _fetch(self, position: Position, attempt: int, tell: Tell) -> Page:
        facts, clock = self._facts, self._surroundings.clock
        once_only = facts.continuation == "single_use" and position.token is not None
        self._allowance.check()
        requested_at = clock()
        result = self._ask(
            self._paging.call(position), token=position.token, repeatable=not once_only, tell=tell
        )
        received_at = clock()
        try:
            page = page_of(result, facts)
            following = self._paging.follows(page.around, position, records=len(page.records))
            told = reported(page.around, {}, facts)
        except ProtocolError as error:
            tell(None, error.code, sha256(bytes_of(result)).digest(), received_at)
            raise
        if isinstance(following, Next):
            self._given[1].add(following.token)
        return Page(
            position=position,
            fingerprint=self._fingerprint(position),
            continuation=following,
            body=page.body,
            records=len(page.records),
            leaf_hashes=leaf_hashes(page.records),
            reported=told,
            attempts=attempt,
            requested_at=requested_at,
            received_at=received_at,
        )

    def _ask(
        self, call: McpCall, *, token: str | None, repeatable: bool, tell: Tell
    ) -> dict[str, Any]:
        """Make a call once and return its result, if it is none that is marked as an error."""
        session = self._opened()
        try:
            self._check_bound(session, session.connect(), token)
            result = session.call(call)
        except ServerRefusedError as error:
            answered, now = session.answered, self._surroundings.clock()
            status = None if answered is None else answered.status
            digest = sha256(bytes_of(error.number)).digest()
            if status == SESSION_GONE and session.handshake_era:
                session.drop()
                tell(status, "session_gone", digest, now)
                raise TransientSourceError("session_gone", str(error)) from error
            told = understand_refusal(
                error, facts=self._facts, answered=answered, repeatable=repeatable, now=now
            )
            tell(status, told.reason, digest, now)
            raise told.error from error
        except TransientSourceError as error:
            tell(None, error.reason, sha256().digest(), self._surroundings.clock())
            if repeatable or error.reason == "not_connected":
                raise
            raise ContinuationConsumedError(
                f"{error}, and the continuation it was called with works only once"
            ) from error
        except ProtocolError as error:
            tell(None, error.code, sha256().digest(), self._surroundings.clock())
            raise
        if result.get("isError") is True:
            told = understand_error_result(
                result, facts=self._facts, call=call, repeatable=repeatable
            )
            digest = sha256(bytes_of(result)).digest()
            tell(None, told.reason, digest, self._surroundings.clock())
            raise told.error
        return result

    def _check_bound(self, session: "McpSession", connection: int, token: str | None) -> None:
        """Refuse a token of another connection, where tokens die with theirs.

        Raises:
            ContinuationConsumedError: the token may not be used again.
        """
        if self._given[0] != connection:
            self._given = connection, set()
        old_list = self._facts.method is not None and session.handshake_era
        if not old_list and self._facts.continuation != "connection_bound":
            return
        if token is not None and token not in self._given[1]:
            raise ContinuationConsumedError(
                f"{self._facts.tool} goes on from a connection that has ended; its continuations "
                "die with theirs, so a new generation must begin"
            )

    def _fingerprint(self, position: Position) -> bytes:
        """Digest what must be equal on every call: all but cursor, pin and page size."""
        return digest_of({**self._frozen, "high_water_mark": position.high_water_mark})

    def _identity(self) -> tuple[str | None, str | None]:
        facts = self._facts.identity
        if facts is None:
            return None, None
        around = self._aside(facts.tool, facts.arguments)
        return principal_in(around, at=facts.at, tenant_at=facts.tenant_at, where=facts.tool)

    def _aside(self, tool: str, arguments: Arguments) -> Any:
        """Ask a tool beside the pages."""
        call = ToolCall(tool=tool, arguments=arguments)
        result = self._resending.send(
            lambda _: self._ask(call, token=None, repeatable=True, tell=self.refused_aside)
        )
        return content_of(result, self._facts.content, tool)

    def _opened(self) -> "McpSession":
        """Return the session, made for the first call: later stages open sources and ask nothing.

        Raises:
            ConfigurationError: the SDK is not installed.
        """
        if self._session is None:
            try:
                from scan_pipeline.sources.mcp.session import McpSession  # noqa: PLC0415  # heavy
            except ModuleNotFoundError as error:
                raise ConfigurationError(
                    f"protocol mcp_tool needs {error.name}, which is not installed; expected "
                    "pip install 'scan-pipeline[mcp_tool]'"
                ) from error
            self._session = McpSession(
                self._facts.transport,
                environ=self._surroundings.environ,
                inner=self._surroundings.inner,
                timeout_s=self._surroundings.retries.timeout,
                pause=self._surroundings.sleep,
            )
        return self._session


PROTOCOL: Final = Protocol(facts=McpToolSource, open=McpTool)
