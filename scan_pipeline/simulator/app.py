"""The registry's face: an ASGI application, the same in process and on a port."""

from collections.abc import Awaitable, Callable
from email.utils import format_datetime
from typing import Final

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from scan_pipeline.simulator.answers import Answer, RequestRefusedError, refusal
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.rows import CollectionName

DISCONNECT: Final = "simulator.disconnect"
"""An ASGI extension: the server breaks the connection where the application says so."""

SLEEP: Final = "simulator.sleep"
"""An ASGI extension: how to wait, where no event loop runs; an async function of seconds."""

COLLECTIONS: Final[tuple[CollectionName, ...]] = ("customers", "support_cases")


class AnswerResponse(Response):
    """An answer on its way out, as far as it gets."""

    def __init__(self, answer: Answer, *, date: str) -> None:
        headers = {"date": date, "cache-control": "no-store", **answer.headers}
        super().__init__(
            answer.body,
            status_code=answer.status,
            headers=headers,
            media_type=answer.content_type,
        )
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, or break off.

        A server without the `simulator.disconnect` extension ends a broken answer in its own way.
        """
        extensions = scope.get("extensions") or {}
        if self.answer.delay_s:
            sleep: Callable[[float], Awaitable[None]] = extensions.get(SLEEP, anyio.sleep)
            await sleep(self.answer.delay_s)
        if self.answer.wire == "whole":
            await super().__call__(scope, receive, send)
            return
        if self.answer.wire == "cut":
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            sent = self.answer.body[: self.answer.sent_bytes]
            await send({"type": "http.response.body", "body": sent, "more_body": True})
        if DISCONNECT in extensions:
            await send({"type": DISCONNECT})


def create_app(registry: Registry) -> Starlette:
    """Return the registry as an ASGI application.

    `GET /v1/customers` and `/v1/support_cases` list; below each, `/partition_counts?by=region`
    counts, `/high_water_mark` tells the newest sequence number, `/change_token` the state of the
    collection and `/delta` its changes; `GET /v1/identity` tells who asks. All want a bearer token,
    and refuse in one envelope.
    """

    def respond(answer: Answer) -> Response:
        return AnswerResponse(answer, date=format_datetime(registry.clock(), usegmt=True))

    def list_route(name: CollectionName) -> Route:
        async def list_page(request: Request) -> Response:
            return respond(
                registry.list_page(
                    name,
                    params=request.query_params.multi_items(),
                    authorization=request.headers.get("authorization"),
                )
            )

        return Route(f"/v1/{name}", list_page, methods=["GET"])

    def counts_route(name: CollectionName) -> Route:
        async def partition_counts(request: Request) -> Response:
            return respond(
                registry.partition_counts(
                    name,
                    params=request.query_params.multi_items(),
                    authorization=request.headers.get("authorization"),
                )
            )

        return Route(f"/v1/{name}/partition_counts", partition_counts, methods=["GET"])

    def mark_route(name: CollectionName) -> Route:
        async def high_water_mark(request: Request) -> Response:
            authorization = request.headers.get("authorization")
            return respond(registry.high_water_mark(name, authorization=authorization))

        return Route(f"/v1/{name}/high_water_mark", high_water_mark, methods=["GET"])

    def token_route(name: CollectionName) -> Route:
        async def change_token(request: Request) -> Response:
            authorization = request.headers.get("authorization")
            return respond(registry.change_token(name, authorization=authorization))

        return Route(f"/v1/{name}/change_token", change_token, methods=["GET"])

    def delta_route(name: CollectionName) -> Route:
        async def delta(request: Request) -> Response:
            return respond(
                registry.delta(
                    name,
                    params=request.query_params.multi_items(),
                    authorization=request.headers.get("authorization"),
                )
            )

        return Route(f"/v1/{name}/delta", delta, methods=["GET"])

    async def identity(request: Request) -> Response:
        authorization = request.headers.get("authorization")
        return respond(registry.identity(authorization=authorization))

    async def refused(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        code = {404: "not_found", 405: "method_not_allowed"}.get(status, "refused")
        message = f"{request.method} {request.url.path} is not served here"
        headers = getattr(error, "headers", None)
        return respond(refusal(RequestRefusedError(status, code, message, headers=headers)))

    routes = [Route("/v1/identity", identity, methods=["GET"])]
    for name in COLLECTIONS:
        routes += [list_route(name), counts_route(name), mark_route(name), token_route(name)]
        routes += [delta_route(name)]
    return Starlette(routes=routes, exception_handlers={HTTPException: refused})
