"""Each method of a path is a route of its own; what the router answers to OPTIONS and in a 405 names them all.

Its routes write into the exchange what they know of the request: the edge's log line is made of that.
"""

from collections.abc import Awaitable, Callable
from http import HTTPMethod, HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import exchange_of, header
from ouzel.api.http.routing_errors import MethodNotAllowed


class MethodRouter(Router):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except HTTPException as error:
            if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
                raise
            allowed = ", ".join(self._allowed(scope))
            if scope["method"] != HTTPMethod.OPTIONS:
                raise MethodNotAllowed(scope["method"], scope["path"], allowed) from error
            await Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": allowed})(scope, receive, send)

    def _allowed(self, scope: Scope) -> list[str]:
        routes = [route for route in self.routes if isinstance(route, Route)]
        allowed = [route.methods or set() for route in routes if route.matches(scope)[0] is not Match.NONE]
        return sorted({HTTPMethod.OPTIONS.value}.union(*allowed))


class MethodRoute(Route):
    def __init__(
        self,
        path: str,
        endpoint: ASGIApp | Callable[[Request], Awaitable[Response]],
        *,
        method: str,
        is_routine: bool = False,
        needed_header: str | None = None,
        template: str = "",
    ) -> None:
        """With `needed_header` the route takes only requests that have this header.

        Logs, traces and metrics name `template` instead of the path if many routes share it.
        """
        super().__init__(path, endpoint, methods=[method])
        self._is_routine = is_routine
        self._template = template or self.path_format
        self._needed_header = None if needed_header is None else needed_header.encode()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, inner_scope = super().matches(scope)
        if match is Match.NONE or self._needed_header is None or header(scope, self._needed_header) is not None:
            return match, inner_scope
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope)
        exchange.route, exchange.is_routine = self._template, self._is_routine
        await super().handle(scope, receive, send)


class SocketRoute(WebSocketRoute):
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange_of(scope).route = self.path_format
        await super().handle(scope, receive, send)
