"""Opens the WebSockets of the Responses API, and limits their number."""

from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.body_budget import Share
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.socket_life import SocketLife
from ouzel.api.responses.socket.connection import Connection
from ouzel.api.responses.socket.responder import Responder
from ouzel.api.responses.socket.steering import Steering
from ouzel.responses.stored.recent_responses import RecentHistories, RecentResponses

_MAX_RECENT = 64
# A connection remembers responses up to this number of messages of the longest length.
_RECENT_MESSAGES = 4


class ResponsesSocket:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._bodies = catalogue.shared.bodies
        limits = self._limits = catalogue.shared.limits
        self._max_recent_bytes = _RECENT_MESSAGES * limits.max_body_bytes
        self._histories = RecentHistories(max(limits.most_body_bytes, self._max_recent_bytes))
        self._sockets = catalogue.shared.sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._sockets.count():
            await receive()  # connect
            await send({"type": "websocket.accept"})
            with (
                self._bodies.share() as share,
                self._bodies.share() as steers_share,
                self._histories.remember_client(
                    max_responses=_MAX_RECENT, max_bytes=self._max_recent_bytes
                ) as recent,
            ):
                steering = Steering(
                    max_queued_bytes=self._limits.max_body_bytes, share=steers_share
                )
                await self._connection(
                    scope, receive, send, share=share, recent=recent, steering=steering
                ).serve()

    def _connection(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        share: Share,
        recent: RecentResponses,
        steering: Steering,
    ) -> Connection:
        path = scope["raw_path"].decode("latin-1")
        responder = Responder(
            self._catalogue,
            recent=recent,
            steering=steering,
            exchange=get_exchange(scope),
            path=path,
        )
        return Connection(
            SocketLife(self._limits, receive, send),
            responder,
            steering,
            share=share,
            threads=self._catalogue.shared.threads,
            max_waiting_bytes=self._limits.max_body_bytes,
        )


OPERATIONS = (
    Operation(
        method="websocket",
        path="/v1/responses",
        prefixes=PREFIXES,
        # OpenAPI cannot describe WebSockets; the summary of POST names it.
        is_documented=False,
        overall=ResponsesSocket,
    ),
)
