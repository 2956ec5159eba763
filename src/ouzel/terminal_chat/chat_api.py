"""Calls the API from the main thread: lists models, checks fields, streams answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from queue import SimpleQueue
from types import TracebackType
from typing import Any  # the OpenAPI document's JSON

import msgspec

from ouzel.client.base import UNREADABLE, ApiClient, ApiFailure, read_failure
from ouzel.terminal_chat.answer import Answer, Piece
from ouzel.terminal_chat.loop_thread import LoopThread
from ouzel.terminal_chat.mcp_servers import McpServers
from ouzel.terminal_chat.response_answer import ResponseAnswer
from ouzel.terminal_chat.response_body import make_response_body, strip_items

_CHAT = "/v1/chat/completions"
_RENDER = f"{_CHAT}/render"
_RESPONSES = "/v1/responses"
_COUNT = f"{_RESPONSES}/input_tokens"
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

    field_names: frozenset[str] = frozenset()  # fields of a request
    has_check: bool = False  # there is an endpoint that checks requests


class ChatApi:
    """Requests answers: chat completions, or responses if the server runs MCP tools for them."""

    def __init__(
        self, client: ApiClient, loop: LoopThread, mcp_servers: McpServers | None = None
    ) -> None:
        self._client = client
        self._loop = loop
        self.mcp_servers = mcp_servers or McpServers()
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
        """Returns the fields of a request; empty if the server does not tell."""
        return self._fetch_document().field_names

    def check(self, body: Body) -> bool:
        """Checks a body without an answer; returns False if the server has no endpoint for it.

        Raises ApiFailure if the server refuses the body, or cannot reach an MCP server. An error of
        a server without the endpoint means nothing: OpenAI, for example, takes `render` for the id
        of an answer.
        """
        path = _COUNT if self.mcp_servers else _RENDER
        encoded = msgspec.json.encode(self._make_body(body))
        answer = self._loop.run(self._client.ask("POST", path, encoded))
        if answer.status == HTTPStatus.OK:
            return True
        if not self._fetch_document().has_check:
            return False
        raise read_failure(answer)

    def answer(self, body: Body) -> "AnswerStream":
        made = self._make_body(body)
        if self.mcp_servers:
            return AnswerStream(self._client, self._loop, _RESPONSES, made, ResponseAnswer())
        made["stream_options"] = {"include_usage": True}
        return AnswerStream(self._client, self._loop, _CHAT, made, Answer())

    def _make_body(self, body: Body) -> dict[str, object]:
        if self.mcp_servers:
            return make_response_body(body, self.mcp_servers.entries())
        messages = body.get("messages", [])
        assert isinstance(messages, Sequence)
        return {**body, "messages": [strip_items(message) for message in messages]}

    def _fetch_document(self) -> _Document:
        if self._document is None:
            answer = self._loop.run(self._client.ask("GET", "/openapi.json"))
            self._document = _Document()
            if answer.status == HTTPStatus.OK:
                self._document = _read_document(answer.body, is_responses=bool(self.mcp_servers))
        return self._document


def _read_document(document: bytes, *, is_responses: bool) -> _Document:
    name = "ResponsesRequest" if is_responses else "ChatCompletionRequest"
    try:
        content: Any = msgspec.json.decode(document)
        names = frozenset(content["components"]["schemas"][name]["properties"])
        return _Document(names, has_check=(_COUNT if is_responses else _RENDER) in content["paths"])
    except (ValueError, RecursionError, LookupError, TypeError):
        return _Document()


class _End:
    """Marks the end of a stream: the answer is complete, has failed, or the user has stopped it."""

    def __init__(self, *, is_stopped: bool = False, error: BaseException | None = None) -> None:
        self.is_stopped = is_stopped
        self.error = error


class AnswerStream:
    """Streams an answer; entering the context sends the request, and leaving it ends it."""

    def __init__(
        self, client: ApiClient, loop: LoopThread, path: str, body: Body, answer: Answer
    ) -> None:
        """`answer` is empty, and collects the events."""
        self._path = path
        self._body = msgspec.json.encode({**body, "stream": True})
        self._client = client
        self._loop = loop
        self._came: SimpleQueue[bytes | _End] = SimpleQueue()
        self.answer = answer

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
            async with self._client.events(self._path, self._body) as events:
                async for event in events:
                    self._came.put(event)
                    if self.answer.is_last(event):
                        break
        except Exception as error:  # broad: the main thread waits for an end of the stream
            self._came.put(_End(error=error))
        else:
            self._came.put(_End())
