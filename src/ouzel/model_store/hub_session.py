"""Limits the length of a hub's answers, because `huggingface_hub` reads any length into memory.

Rules
1. The library uses Ouzel's HTTP client, which counts the bytes of each answer and gives up at
   `MAX_ANSWER_BYTES`. Large files are exempt: `download` knows their lengths.
2. The client asks for uncompressed answers and refuses compressed ones, since a few compressed
   bytes can expand without limit.
3. If an answer makes the library fail, the error says that the answer is invalid.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from huggingface_hub import get_session, set_client_factory

MAX_ANSWER_BYTES = 64 * 2**20
EXEMPT = {"ouzel_exempt": True}  # marks a request whose sender bounds the answer itself

# The hub's library raises these errors for JSON of another shape, or nested too deeply.
_MALFORMED = (TypeError, KeyError, AttributeError, IndexError, AssertionError, RecursionError)


@contextmanager
def bounded_answers() -> Iterator[None]:
    """Makes the hub's library use an HTTP client whose answers are bounded.

    Raises ValueError for an invalid answer.
    """
    if _bound not in get_session().event_hooks["response"]:
        _replace_client()
    try:
        yield
    except _MALFORMED as error:
        raise ValueError(
            f"the hub sent an invalid answer ({type(error).__name__}: {error})"
        ) from error


def _replace_client() -> None:
    """Replaces the library's factory of clients, which it calls again after a failed connection."""
    requests = get_session().event_hooks["request"]

    def make() -> httpx2.Client:
        return httpx2.Client(
            headers={"accept-encoding": "identity"},
            event_hooks={"request": requests, "response": [_bound]},
            follow_redirects=True,
            timeout=None,
        )

    set_client_factory(make)


def _bound(response: httpx2.Response) -> None:
    if response.request.extensions.get("ouzel_exempt"):
        return
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
        raise ValueError(
            f"the hub sent a compressed answer, although the request forbade it: {encoding[:20]!r}"
        )
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        num_bytes = 0
        for piece in self._stream:
            num_bytes += len(piece)
            if num_bytes > MAX_ANSWER_BYTES:
                raise ValueError(
                    f"an answer of the hub is longer than {MAX_ANSWER_BYTES // 2**20} MiB"
                )
            yield piece

    def close(self) -> None:
        self._stream.close()
