"""An API key says who may pass. Only digests of the keys are kept, and they are compared in constant time."""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import exchange_of, header, method_of
from ouzel.errors import Unauthenticated

OPEN_PATHS = frozenset(
    {"/", "/about", "/health", "/ping", "/v2/health/live", "/v2/health/ready"}
)  # for load balancers, which have no key, and people
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_KEY_HEADERS = (b"x-api-key", b"api-key")  # the second is what Azure's clients send


class Guard:
    """Raises Unauthenticated before anything of the body is read."""

    def __init__(
        self,
        app: ASGIApp,
        api_keys: Iterable[str],
        open_paths: Collection[str] = OPEN_PATHS,
        own_key_paths: Collection[str] = (),
    ) -> None:
        """Everybody may read `open_paths`; endpoints at `own_key_paths` check a key of their own for every method."""
        self._app = app
        self._open_paths = open_paths
        self._own_key_paths = own_key_paths
        self._key_ids = [key_id(key.encode()) for key in api_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_open(scope):
            exchange_of(scope).key_id = self._check(scope)
        await self._app(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        path = scope["path"]
        return path in self._own_key_paths or (
            path in self._open_paths and method_of(scope) in _READING
        )

    def _check(self, scope: Scope) -> str:
        sent_ids = [key_id(key.encode("latin-1")) for key in keys_in(scope)]
        scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
        if not sent_ids and token and scheme.lower() != "bearer":
            raise Unauthenticated(
                f"an API key is needed, and Authorization {scheme[:40]} is none: send the key as 'X-Api-Key: KEY' "
                "beside it, or as 'Authorization: Bearer KEY' instead"
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


class AdminGuard:
    """Lets those pass who change the server, which no other key is good for."""

    def __init__(self, admin_key: str) -> None:
        """An empty key is nobody's."""
        self._key_id = key_id(admin_key.encode()) if admin_key else None

    def check(self, scope: Scope) -> None:
        """Raises Unauthenticated."""
        if self._key_id is None:
            raise Unauthenticated(
                "this server has no --admin-api-key, so nobody may change what it serves"
            )
        sent_ids = [key_id(key.encode("latin-1")) for key in keys_in(scope)]
        if not any(hmac.compare_digest(self._key_id, each) for each in sent_ids):
            raise Unauthenticated("the admin key is needed: send it as 'Authorization: Bearer KEY'")


def key_id(key: bytes) -> str:
    """Returns an opaque name of the key: it is the same after a restart, and there is no way back."""
    return hashlib.blake2b(key, digest_size=16, person=b"ouzel key id").hexdigest()


def keys_in(scope: Scope) -> Iterator[str]:
    scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.strip()
    for name in _KEY_HEADERS:
        key = header(scope, name)
        if key is not None:
            yield key
