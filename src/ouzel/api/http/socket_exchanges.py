"""Makes an exchange for each message of a WebSocket, and logs refused messages."""

import itertools

from ouzel.api.http.exchange import Exchange
from ouzel.api.http.refusal_reason import make_refusal_reason
from ouzel.api.http.request_log import log_exchange
from ouzel.errors import OuzelError
from ouzel.observability import request_id_in_scope


class SocketExchanges:
    """Numbers the messages of one connection; `handshake` is the exchange that opened it."""

    def __init__(self, handshake: Exchange, path: str) -> None:
        self._handshake = handshake
        self._path = path
        self._numbers = itertools.count(1)

    def make_next(self) -> Exchange:
        """Returns the next message's exchange, with client and key of the handshake."""
        return Exchange(
            f"{self._handshake.request_id}/{next(self._numbers)}",
            client=self._handshake.client,
            key_id=self._handshake.key_id,
        )

    def log_refused(self, error: OuzelError) -> None:
        """Logs a message that is invalid, or was refused before it became a request."""
        exchange = self.make_next()
        exchange.status, exchange.refusal = error.status, make_refusal_reason(error)
        before = request_id_in_scope.set(exchange.request_id)
        log_exchange(exchange, "message", self._path)
        request_id_in_scope.reset(before)
