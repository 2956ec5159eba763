"""Routes each method of a path to an endpoint of its own. OPTIONS and 405 name all methods.

Routes without parameters win over routes with parameters for every method: `/v1/responses/compact`
never matches the response with the id "compact". Routes write the facts that they know into the
exchange, for the log line.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPMethod, HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.errors import MethodNotAllowed
from ouzel.api.http.exchange import get_exchange, get_header


class MethodRouter(Router):
    def __init__(self, routes: Sequence[BaseRoute], *, default: ASGIApp) -> None:
        super().__init__(routes, redirect_slashes=False, default=default)
        self._methods_of_plain_paths = _methods_of_plain_paths(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods = (
            self._methods_of_plain_paths.get(scope["path"]) if scope["type"] == "http" else None
        )
        if methods is not None and scope["method"] not in methods:
            await _refuse_method(methods, scope, receive, send)
            return
        try:
            await super().__call__(scope, receive, send)
        except HTTPException as error:
            if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
                raise
            await _refuse_method(self._allowed(scope), scope, receive, send)

    def _allowed(self, scope: Scope) -> set[str]:
        routes = [route for route in self.routes if isinstance(route, Route)]
        allowed = [
            route.methods or set() for route in routes if route.matches(scope)[0] is not Match.NONE
        ]
        return set().union(*allowed)


def _methods_of_plain_paths(routes: Iterable[BaseRoute]) -> dict[str, set[str]]:
    """Returns the methods by path, for the paths without parameters."""
    methods: dict[str, set[str]] = {}
    for route in routes:
        if isinstance(route, Route) and "{" not in route.path:
            methods.setdefault(route.path, set()).update(route.methods or ())
    return methods


async def _refuse_method(
    methods: Iterable[str], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answers OPTIONS with the allowed methods. Raises MethodNotAllowed for any other method."""
    allowed = ", ".join(sorted({HTTPMethod.OPTIONS.value, *methods}))
    if scope["method"] != HTTPMethod.OPTIONS:
        raise MethodNotAllowed(scope["method"], scope["path"], allowed)
    await Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": allowed})(
        scope, receive, send
    )


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
        if (
            match is Match.NONE
            or self._needed_header is None
            or get_header(scope, self._needed_header) is not None
        ):
            return match, inner_scope
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = get_exchange(scope)
        exchange.route, exchange.is_routine = self._template, self._is_routine
        await super().handle(scope, receive, send)


class SocketRoute(WebSocketRoute):
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        get_exchange(scope).route = self.path_format
        await super().handle(scope, receive, send)
