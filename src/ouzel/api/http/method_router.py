"""The 405 of this router names all methods of the path, though each method of a path is a route of its own."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.routing import Match, Route, Router
from starlette.types import Receive, Scope, Send


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
