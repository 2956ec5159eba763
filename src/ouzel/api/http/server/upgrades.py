"""Until a WebSocket is accepted, what answers it is an HTTP response like any other.

So whoever refuses a request need not know what it was to become: errors have the same body, headers and log line.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.http.server.close_codes import SERVER_FAILED


class Upgrades:
    """A response after the accept closes the connection: there is no other way."""

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
