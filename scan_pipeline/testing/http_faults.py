"""Faults that need no knowledge of the source: what may befall any exchange over HTTP."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import anyio.to_thread
import httpx2

from scan_pipeline.testing.faults import Fault, FaultKind

AT_THE_EXCHANGE: Final[frozenset[FaultKind]] = frozenset(
    {
        "throttled",
        "unavailable",
        "timed_out",
        "response_lost",
        "login_page",
        "body_cut",
        "page_repeated",
        "expired",
    }
)
"""Kinds that are played here."""

WAIT_S: Final = 7
"""Seconds that a throttled answer asks to wait."""

Answer: TypeAlias = Callable[[], httpx2.Response]

AS_HTTP_SAYS: Final[Mapping[FaultKind, Answer]] = {
    "throttled": lambda: httpx2.Response(429, headers={"retry-after": str(WAIT_S)}),
    "unavailable": lambda: httpx2.Response(503),
    "expired": lambda: httpx2.Response(410),
    "login_page": lambda: httpx2.Response(
        200,
        headers={"content-type": "text/html"},
        content=b"<!doctype html><html><body>Please sign in</body></html>",
    ),
}
"""Answers of a source that says no more than HTTP does."""


class HttpFaults(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Puts one fault between a client and its server, for clients of both kinds.

    Attributes:
        pages: page requests that came.
        struck: whether the fault happened.

    Args:
        inner: the server.
        fault: what happens, at which page request.
        is_page: says which requests ask for a page; others pass.
        answers: by kind of fault, what the source answers then, where it is not HTTP's own.
    """

    def __init__(
        self,
        inner: httpx2.BaseTransport,
        fault: Fault,
        *,
        is_page: Callable[[httpx2.Request], bool],
        answers: Mapping[FaultKind, Answer],
    ) -> None:
        self._inner, self._fault = inner, fault
        self._is_page, self._answers = is_page, {**AS_HTTP_SAYS, **answers}
        self._before: bytes | None = None
        self._before_headers = httpx2.Headers()
        self.pages = 0
        self.struck = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request, or do not."""
        if not self._is_page(request):
            return self._inner.handle_request(request)
        self.pages += 1
        kind, now = self._fault.kind, self.pages == self._fault.page
        if kind == "page_repeated" and self.pages >= self._fault.page:
            self.struck = True
            return httpx2.Response(200, headers=self._before_headers, content=self._before or b"")
        if not now or kind not in AT_THE_EXCHANGE:
            return self._answered(request)
        self.struck = True
        match kind:
            case "throttled" | "unavailable" | "expired" | "login_page":
                return self._answers[kind]()
            case "body_cut":
                whole = self._answered(request)
                cut = whole.content[: len(whole.content) * 2 // 3]
                return httpx2.Response(200, headers=_plain(whole.headers), content=cut)
            case "timed_out":
                self._answered(request)
                raise httpx2.ReadTimeout("no answer in time", request=request)
            case _:
                self._answered(request)
                raise httpx2.ReadError("the connection broke", request=request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request of a client that does not wait."""
        await request.aread()
        return await anyio.to_thread.run_sync(self.handle_request, request)

    def _answered(self, request: httpx2.Request) -> httpx2.Response:
        """Let the server answer, and keep what it said."""
        answer = self._inner.handle_request(request)
        self._before = answer.read()
        self._before_headers = httpx2.Headers(_plain(answer.headers))
        return answer

    def close(self) -> None:
        """Close the server's transport."""
        self._inner.close()


def _plain(headers: httpx2.Headers) -> dict[str, str]:
    """Return headers without those that speak of the bytes on the wire."""
    of_the_wire = {"content-length", "content-encoding", "transfer-encoding"}
    return {name: value for name, value in headers.items() if name.lower() not in of_the_wire}
