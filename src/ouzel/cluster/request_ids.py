"""Gives each answer one request id: Ray Serve and Ouzel both assign one, and Ray's wins."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER = b"x-request-id"


class OneRequestId:
    """Removes Ouzel's id from an answer if the request has an id: Ray Serve adds that one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [(name, value) for name, value in scope["headers"] if name == _HEADER]

        async def send_one(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    header for header in message["headers"] if header not in given
                ]
            await send(message)

        await self._app(scope, receive, send_one)
