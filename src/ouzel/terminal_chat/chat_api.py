"""Calls the API from the main thread: lists models, checks fields, streams answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from queue import SimpleQueue
from types import TracebackType
from typing import Any  # the OpenAPI document's JSON

import msgspec

from ouzel.client.base import UNREADABLE, ApiClient, ApiFailure, read_failure
from ouzel.terminal_chat.answer import Answer, Piece
from ouzel.terminal_chat.loop_thread import LoopThread

_CHAT = "/v1/chat/completions"
_RENDER = f"{_CHAT}/render"
_UNKNOWN = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
Body = Mapping[str, object]


class _Model(msgspec.Struct):
    id: str
    capabilities: object = None  # a list of names in Ouzel's answer; other servers may differ

    @property
    def chats(self) -> bool:
        """Tells whether the model answers chats; unknown capabilities count as yes."""
        return not isinstance(self.capabilities, list) or "chat" in self.capabilities


class _Models(msgspec.Struct):
    data: list[_Model]


@dataclass(frozen=True, slots=True)
class _Document:
    """Facts from the OpenAPI document of the server; empty without a document."""

    field_names: frozenset[str] = frozenset()  # fields of a chat completion's request
    has_render: bool = False


class ChatApi:
    def __init__(self, client: ApiClient, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop
        self._document: _Document | None = None  # None until it is fetched

    def models(self) -> list[str] | None:
        """Returns the ids of the models. Models that answer chats come first.

        Returns None if the server has no list. Raises ApiFailure.
        """
        answer = self._loop.run(self._client.ask("GET", "/v1/models"))
        if answer.status in _UNKNOWN:
            return None
        if answer.status != HTTPStatus.OK:
            raise read_failure(answer)
        try:
            models = msgspec.json.decode(answer.body, type=_Models).data
        except UNREADABLE as error:
            raise ApiFailure(f"/v1/models answered no list of models: {error}") from error
        return [model.id for model in sorted(models, key=lambda model: not model.chats)]

    def field_names(self) -> frozenset[str]:
        """Returns the fields of a chat completion's request; empty if the server does not tell."""
        return self._fetch_document().field_names

    def check(self, body: Body) -> bool:
        """Checks a body with the endpoint `render`; returns False if the server does not have it.

        Raises ApiFailure if the server refuses the body. An error of a server without the endpoint
        means nothing: OpenAI, for example, takes `render` for the id of an answer.
        """
        answer = self._loop.run(self._client.ask("POST", _RENDER, msgspec.json.encode(body)))
        if answer.status == HTTPStatus.OK:
            return True
        if not self._fetch_document().has_render:
            return False
        raise read_failure(answer)

    def _fetch_document(self) -> _Document:
        if self._document is None:
            answer = self._loop.run(self._client.ask("GET", "/openapi.json"))
            self._document = _Document()
            if answer.status == HTTPStatus.OK:
                self._document = _read_document(answer.body)
        return self._document

    def answer(self, body: Body) -> "AnswerStream":
        return AnswerStream(self._client, self._loop, body)


def _read_document(document: bytes) -> _Document:
    try:
        content: Any = msgspec.json.decode(document)
        names = frozenset(content["components"]["schemas"]["ChatCompletionRequest"]["properties"])
        return _Document(names, has_render=_RENDER in content["paths"])
    except (ValueError, RecursionError, LookupError, TypeError):
        return _Document()


class _End:
    """Marks the end of a stream: the answer is complete, has failed, or the user has stopped it."""

    def __init__(self, *, is_stopped: bool = False, error: BaseException | None = None) -> None:
        self.is_stopped = is_stopped
        self.error = error


class AnswerStream:
    """Streams an answer; entering the context sends the request, and leaving it ends it."""

    def __init__(self, client: ApiClient, loop: LoopThread, body: Body) -> None:
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        self._body = msgspec.json.encode({**body, **streamed})
        self._client = client
        self._loop = loop
        self._came: SimpleQueue[bytes | _End] = SimpleQueue()
        self.answer = Answer()

    def __enter__(self) -> "AnswerStream":
        self._asking = self._loop.begin(self._ask())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if not self._asking.cancel():
            self._asking.exception()
        self.answer.end()

    def __iter__(self) -> Iterator[Piece]:
        """Yields the pieces of the answer. Raises ApiFailure."""
        while not isinstance(event := self._came.get(), _End):
            yield self.answer.feed(event)
        if event.error is not None:
            raise event.error
        self.answer.is_stopped = event.is_stopped
        if not self.answer.is_over:
            raise ApiFailure("the answer broke off: the server ended it without a reason")

    def stop(self) -> None:
        """Ends the iteration; a signal handler may call it at any time."""
        self._came.put(_End(is_stopped=True))

    async def _ask(self) -> None:
        try:
            async with self._client.events(_CHAT, self._body) as events:
                async for event in events:
                    self._came.put(event)
        except Exception as error:  # broad: the main thread waits for an end of the stream
            self._came.put(_End(error=error))
        else:
            self._came.put(_End())
