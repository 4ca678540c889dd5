"""The bench of a source over HTTP for which there is a fake server: an app, or a transport."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import anyio
import httpx2

from scan_pipeline.core.scan import Scan
from scan_pipeline.testing.bench import Bench, Key, Opened
from scan_pipeline.testing.faults import Fault, FaultKind, NotExercisedError
from scan_pipeline.testing.http_faults import AT_THE_EXCHANGE, Answer, HttpFaults

Server: TypeAlias = Any
"""What answers: an `httpx2.BaseTransport`, a function from request to response, or an ASGI app."""

Change: TypeAlias = Callable[[Server], Sequence[Key] | None]
"""Does to a fake server what a kind of fault says.

Kinds that are so from the beginning (`no_records`, `last_page_full`) are done before the first
request and return the keys that there are then; the others before a page, and return None.
"""

_OTHER: Final = "the bench has no change for it, and only the server could play it"


class AppBench(Bench):
    """Plays a source by the user's own fake server.

    What may befall any exchange is played between the two; what the server must do itself is a
    `change` of the bench, and not exercised where there is none.

    Args:
        scan: the scan, its addresses whatever the server answers to.
        serve: makes a fresh server.
        keys: keys of its records, in order; three pages of them at least.
        changes: by kind of fault, what to do to the server.
        environ: secrets that the scan names.
        is_page: says which requests ask for a page.
        answers: how the source answers `throttled`, `unavailable` and `expired`, where that is not
            429, 503 and 410 with nothing more; None for what it never says.
    """

    def __init__(
        self,
        scan: Scan,
        serve: Callable[[], Server],
        *,
        keys: Sequence[Key],
        changes: Mapping[FaultKind, Change] | None = None,
        environ: Mapping[str, str] | None = None,
        is_page: Callable[[httpx2.Request], bool] = lambda _: True,
        answers: Mapping[FaultKind, Answer | None] | None = None,
    ) -> None:
        self._scan, self._serve, self._keys = scan, serve, keys
        self._changes, self._environ = changes or {}, environ or {}
        self._is_page, self._answers = is_page, answers or {}

    @property
    def scan(self) -> Scan:
        """The scan."""
        return self._scan

    @contextmanager
    def open(self, scan: Scan, fault: Fault) -> Iterator[Opened]:
        """Make a server, and put the fault between it and the walk, or into it."""
        del scan  # the server is the user's own, whatever the kind of its continuations
        change = self._changes.get(fault.kind)
        if fault.kind not in ("none", *AT_THE_EXCHANGE) and change is None:
            raise NotExercisedError(_OTHER)
        if fault.kind in self._answers and self._answers[fault.kind] is None:
            raise NotExercisedError("the source says nothing of the kind")
        server, keys = self._serve(), self._keys
        inner: httpx2.BaseTransport = as_transport(server)
        if change is not None and fault.strikes:
            inner = _Changing(inner, fault, change=lambda: change(server), is_page=self._is_page)
        elif change is not None:
            keys = change(server) or ()
        said: dict[FaultKind, Answer] = {
            kind: told for kind, told in self._answers.items() if told is not None
        }
        faults = HttpFaults(inner, fault, is_page=self._is_page, answers=said)
        yield Opened(
            keys=keys,
            inner=faults,
            environ=self._environ,
            struck=lambda: not fault.strikes or faults.struck or getattr(inner, "struck", False),
        )


class _Changing(httpx2.BaseTransport):
    """Does a change to a server right before it answers for a page."""

    def __init__(
        self,
        inner: httpx2.BaseTransport,
        fault: Fault,
        *,
        change: Callable[[], object],
        is_page: Callable[[httpx2.Request], bool],
    ) -> None:
        self._inner, self._fault, self._change, self._is_page = inner, fault, change, is_page
        self._pages = 0
        self.struck = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._pages += self._is_page(request)
        if self._pages == self._fault.page and not self.struck:
            self.struck = True
            self._change()
        return self._inner.handle_request(request)


class AsgiTransport(httpx2.BaseTransport):
    """Asks an ASGI application in this process, one request at a time.

    Args:
        app: the application; its lifespan is not run.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        content = request.read()

        async def ask() -> tuple[int, httpx2.Headers, bytes]:
            transport = httpx2.ASGITransport(app=self._app)
            asked = httpx2.Request(
                request.method, request.url, headers=request.headers, content=content
            )
            answer = await transport.handle_async_request(asked)
            return answer.status_code, answer.headers, await answer.aread()

        status, headers, body = anyio.run(ask)
        return httpx2.Response(status, headers=headers, content=body)


def as_transport(server: Server) -> httpx2.BaseTransport:
    """Return a transport over whatever answers.

    Raises:
        TypeError: nothing here knows how to ask it.
    """
    if isinstance(server, httpx2.BaseTransport):
        return server
    if not callable(server):
        raise TypeError(
            f"found a {type(server).__name__}; expected an httpx2 transport, a function from "
            "request to response, or an ASGI application"
        )
    asked: Any = server if inspect.isroutine(server) else type(server).__call__
    parameters = [each for each in inspect.signature(asked).parameters if each != "self"]
    if len(parameters) == 3:
        return AsgiTransport(server)
    answer: Any = server
    return httpx2.MockTransport(answer)
