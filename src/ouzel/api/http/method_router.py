"""The 405 of this router names all methods of the path, though each method of a path is a route of its own.

Its routes write into the exchange what they know of the request: the edge's log line is made of that.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import exchange_of


class MethodRouter(Router):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except HTTPException as error:
            if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
                raise
            raise HTTPException(error.status_code, headers={"Allow": ", ".join(self._allowed(scope))}) from error

    def _allowed(self, scope: Scope) -> list[str]:
        routes = [route for route in self.routes if isinstance(route, Route)]
        allowed = [route.methods or set() for route in routes if route.matches(scope)[0] is not Match.NONE]
        return sorted(set().union(*allowed))


class MethodRoute(Route):
    def __init__(
        self,
        path: str,
        endpoint: ASGIApp | Callable[[Request], Awaitable[Response]],
        *,
        method: str,
        is_watching: bool = False,
    ) -> None:
        super().__init__(path, endpoint, methods=[method])
        self._is_watching = is_watching

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope)
        exchange.route, exchange.is_watching = self.path_format, self._is_watching
        await super().handle(scope, receive, send)


class SocketRoute(WebSocketRoute):
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange_of(scope).route = self.path_format
        await super().handle(scope, receive, send)
