"""The dashboard's web application: who may ask, and what is answered.

Pages and scripts hold no secret, so everybody on this machine may read them. All that starts with
/api/ needs the token, in a header: no other site can make a browser send that header here, and no
cookie exists that a browser would send by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from gpushare._coordinator.client import RefusedError
from gpushare.cli.dashboard import controls
from gpushare.cli.dashboard.rows import printable_all
from gpushare.errors import CoordinatorUnreachable, GpushareError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from gpushare.cli._targets.coordinators import DeviceSockets
    from gpushare.cli.dashboard.feed import Feed

HOSTS = ("127.0.0.1", "localhost")
"""What the Host header may name, with any port: a tunnel by ssh has another one."""
MOST_BODY_BYTES = 4096
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def make_app(feed: Feed, token: str) -> Starlette:
    """Returns the application.

    Args:
        feed: Read from the application's start to its end.
        token: What a request has to know.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        reading = asyncio.create_task(feed.run())
        yield
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading

    api = _Api(feed)
    static = resources.files("gpushare.cli.dashboard") / "static"
    return Starlette(
        routes=[
            Mount(
                "/api",
                routes=[
                    Route("/events", api.events),
                    Route("/why", api.why),
                    Route("/history", api.history),
                    Route("/change", api.change, methods=["POST"]),
                ],
            ),
            Mount("/", StaticFiles(directory=str(static), html=True)),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False),
            Middleware(_Guard, token=token),
        ],
        lifespan=lifespan,
    )


class _Guard:
    """Lets nobody without the token ask the API, and adds headers that bind the browser."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or passes the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        given = dict(scope["headers"]).get(b"authorization", b"")
        if scope["path"].startswith("/api/") and not secrets.compare_digest(given, self._wanted):
            text = "This needs the token. Open the address that gpushare dashboard has printed."
            await JSONResponse({"error": text}, 401)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)


class _Api:
    """What the scripts of the page ask."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def events(self, _: Request) -> Response:
        """All readings from now on, as server-sent events."""
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        seen = 0
        while page := await self._feed.next(seen):
            seen = page["reading"]
            yield f"data: {json.dumps(page, separators=(',', ':'))}\n\n"

    async def why(self, request: Request) -> Response:
        """Why a job waits."""
        return await self._of_job(dict(request.query_params), controls.why)

    async def change(self, request: Request) -> Response:
        """Pauses or resumes a job, or gives it another priority."""
        try:
            asked = json.loads(await _body(request))
            change = controls.read_change(asked.get("what"), asked.get("value"))
        except (ValueError, AttributeError, RecursionError) as error:
            return _error(str(error), 400)
        return await self._of_job(
            asked, lambda sockets, number: controls.make_change(sockets, number, change)
        )

    async def history(self, _: Request) -> Response:
        """The jobs that have ended."""
        try:
            return JSONResponse(printable_all(await asyncio.to_thread(controls.history)))
        except GpushareError as error:
            return _error(str(error), 500)

    async def _of_job(
        self, asked: dict[str, Any], act: Callable[[DeviceSockets, int], str]
    ) -> Response:
        """Asks the coordinator of a job that the page has named by device, number and process."""
        try:
            device, number, pid = str(asked["device"]), int(asked["job"]), int(asked["pid"])
        except (KeyError, TypeError, ValueError, OverflowError):
            return _error("say device, job and pid of a job that the page shows", 400)
        sockets = self._feed.sockets_of(device, number, pid)
        if sockets is None:
            return _error(f"there is no job {number} of process {pid} any more", 404)
        try:
            said = await asyncio.to_thread(act, sockets, number)
        except RefusedError as error:
            return _error(f"job {number}: {error}", 403)
        except CoordinatorUnreachable as error:
            return _error(str(error), 503)
        return JSONResponse({"said": printable_all(said.split("\n"))})


async def _body(request: Request) -> bytes:
    """The body.

    Raises:
        ValueError: It is longer than any that the page sends.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY_BYTES:
            raise ValueError(f"a request has at most {MOST_BODY_BYTES} bytes")
    return body


def _error(text: str, status: int) -> Response:
    return JSONResponse({"error": printable_all(text)}, status)
