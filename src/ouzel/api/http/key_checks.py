"""Checks API keys. Only digests of the keys are stored; they are compared in constant time."""

import hashlib
import hmac
from collections.abc import Callable, Collection, Iterable, Iterator

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.errors import Unauthenticated
from ouzel.api.http.exchange import get_exchange, get_header, get_method

# open to load balancers, which have no key, and to people
OPEN_PATHS = frozenset({"/", "/about", "/health", "/ping", "/v2/health/live", "/v2/health/ready"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_KEY_HEADERS = (b"x-api-key", b"api-key")  # Azure's clients send the second header
_KEY_PROTOCOL = "openai-insecure-api-key."  # OpenAI's clients in pages offer it for WebSockets


class ApiKeyCheck:
    """Raises Unauthenticated for requests without a valid key, before the body is read."""

    def __init__(
        self,
        app: ASGIApp,
        api_keys: Iterable[str],
        open_paths: Collection[str] = OPEN_PATHS,
        own_key_paths: Collection[str] = (),
        is_admitted: Callable[[Scope], bool] = lambda _: False,
    ) -> None:
        """`open_paths` may be read without a key.

        Endpoints at `own_key_paths` check keys themselves. `is_admitted` tells whether a request
        has another key that suffices for its path.
        """
        self._app = app
        self._open_paths = open_paths
        self._own_key_paths = own_key_paths
        self._is_admitted = is_admitted
        self._key_ids = [hash_key(key.encode()) for key in api_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_open(scope) and not self._is_admitted(scope):
            get_exchange(scope).key_id = self._check(scope)
        await self._app(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        path = scope["path"]
        return path in self._own_key_paths or (
            path in self._open_paths and get_method(scope) in _READING
        )

    def _check(self, scope: Scope) -> str:
        sent_ids = [hash_key(key.encode("latin-1")) for key in list_keys(scope)]
        scheme, _, token = (get_header(scope, b"authorization") or "").partition(" ")
        if not sent_ids and token and scheme.lower() != "bearer":
            raise Unauthenticated(
                f"an API key is needed, and Authorization {scheme[:40]} is none: send the key as "
                "'X-Api-Key: KEY' beside it, or as 'Authorization: Bearer KEY' instead"
            )
        if not sent_ids:
            raise Unauthenticated("an API key is needed: send it as 'Authorization: Bearer KEY'")
        matching = [
            known
            for known in self._key_ids
            for each in sent_ids
            if hmac.compare_digest(known, each)
        ]
        if not matching:
            raise Unauthenticated("Incorrect API key provided: it is not one of this server's")
        return matching[0]


class AdminKeyCheck:
    """Checks the admin key, which requests that change the server need. API keys do not suffice."""

    def __init__(self, admin_key: str) -> None:
        """With an empty key all requests are refused."""
        self._key_id = hash_key(admin_key.encode()) if admin_key else None

    def check(self, scope: Scope) -> None:
        """Raises Unauthenticated if the request lacks the admin key."""
        if self._key_id is None:
            raise Unauthenticated(
                "this server has no --admin-api-key, so its models cannot be changed"
            )
        if not self.accepts(scope):
            raise Unauthenticated("the admin key is needed: send it as 'Authorization: Bearer KEY'")

    def accepts(self, scope: Scope) -> bool:
        """Tells whether the request has the admin key."""
        if self._key_id is None:
            return False
        sent_ids = [hash_key(key.encode("latin-1")) for key in list_keys(scope)]
        return any(hmac.compare_digest(self._key_id, each) for each in sent_ids)


def hash_key(key: bytes) -> str:
    """Returns the digest of a key.

    It is the same after a restart, and the key cannot be derived.
    """
    return hashlib.blake2b(key, digest_size=16, person=b"ouzel key id").hexdigest()


def list_keys(scope: Scope) -> Iterator[str]:
    """Yields the API keys in the headers of a request, or in the protocols of a WebSocket."""
    scheme, _, token = (get_header(scope, b"authorization") or "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.strip()
    for name in _KEY_HEADERS:
        key = get_header(scope, name)
        if key is not None:
            yield key
    # Pages cannot add headers to a WebSocket. Each WebSocket must pass the check of origins too.
    for protocol in scope.get("subprotocols", ()):
        if protocol.startswith(_KEY_PROTOCOL):
            yield protocol.removeprefix(_KEY_PROTOCOL)
