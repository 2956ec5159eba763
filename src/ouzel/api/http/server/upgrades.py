"""Turns HTTP responses into refusals of a WebSocket, until the WebSocket is accepted.

So a layer that refuses a request need not know of WebSockets: errors have the same body, headers
and log line.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.http.server.close_codes import SERVER_FAILED


class Upgrades:
    """Sends responses for WebSockets.

    After the accept, a response can only close the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        is_accepted = False

        async def send_translated(message: Message) -> None:
            nonlocal is_accepted
            kind = message["type"]
            if kind == "websocket.accept":
                is_accepted = True
            if not kind.startswith("http.response."):
                await send(message)
            elif not is_accepted:
                await send({**message, "type": f"websocket.{kind}"})
            else:
                await send({"type": "websocket.close", "code": SERVER_FAILED})

        await self._app(scope, receive, send_translated)
