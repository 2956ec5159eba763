"""Asks Chromium to run the page in a process of its own, apart from the process of its previews.

Chromium decides for an origin at its first document in a window, and keeps the decision. So every
document has the header: also an error, or a list of models that somebody opened before the page.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.http.exchange import get_header

OWN_PROCESS_HEADERS = {"origin-agent-cluster": "?1"}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in OWN_PROCESS_HEADERS.items()]


class OwnProcess:
    """Adds `Origin-Agent-Cluster` (HTML standard) to the documents of a browser.

    The document of a frame, such as a preview, has none: with the header, Chromium warns that one
    origin has two kinds of processes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_document = (
            scope["type"] == "http"
            and "text/html" in (get_header(scope, b"accept") or "")
            and get_header(scope, b"sec-fetch-dest") != "iframe"
        )

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
            await send(message)

        await self._app(scope, receive, send_with_header if is_document else send)
