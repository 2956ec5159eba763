"""A waiting request keeps its body as bytes, because the parsed body is many times larger."""

import asyncio
import json
import threading
import time

import pytest
from starlette.types import Message

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.http.body_reader import BodyReader
from ouzel.api.http.dialect import Answer
from ouzel.api.http.exchange import open_exchange
from ouzel.api.http.generating_endpoint import GeneratingEndpoint
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.http.streams import Streams
from ouzel.api.openai.chat import ChatCompletions
from ouzel.config import LimitsConfig
from ouzel.generation import GenerationRequest
from ouzel.observability import Metrics
from ouzel.wire.decode import JsonObject
from ouzel.worker_threads import PreparationThreads
from tests.api.requests import chat
from tests.api.server_setup import MODEL
from tests.api.serving import running_server


class CountedChats:
    """Reads chats, and counts the parsed chats that are not yet requests."""

    def __init__(self, chats: ChatCompletions) -> None:
        self._chats = chats
        self._lock = threading.Lock()
        self._num_parsed = 0
        self.most_parsed = 0

    def parse(self, body: bytes) -> JsonObject:
        fields = self._chats.parse(body)
        time.sleep(0.01)
        with self._lock:
            self._num_parsed += 1
            self.most_parsed = max(self.most_parsed, self._num_parsed)
        return fields

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        with self._lock:
            self._num_parsed -= 1
        return self._chats.prepare(fields, arrival_s)


@pytest.mark.parametrize(("num_bytes", "num_threads"), [(2**12, 4), (2**19, 2)])
def test_no_more_bodies_are_parsed_than_are_being_prepared(
    num_bytes: int, num_threads: int
) -> None:
    body = json.dumps(chat("Hi", max_tokens=1)).encode().ljust(num_bytes)
    answers: list[Message] = []

    with running_server() as server:
        limits, metrics = LimitsConfig(), Metrics(MODEL)
        chats = CountedChats(ChatCompletions(server.model, limits, ChatArchive(None)))

        async def post(endpoint: GeneratingEndpoint) -> None:
            coming: list[Message] = [{"type": "http.request", "body": body}]

            async def receive() -> Message:
                return coming.pop() if coming else await asyncio.Future()

            async def send(message: Message) -> None:
                answers.append(message)

            scope = {"type": "http", "headers": []}
            open_exchange(scope, "one")
            await endpoint(scope, receive, send)

        async def post_many() -> None:
            threads = PreparationThreads()
            admission = RequestAdmission(server.model, metrics, BodyReader(limits))
            endpoint = GeneratingEndpoint(
                lambda _: chats,
                server.model,
                metrics,
                admission,
                streams=Streams(10),
                threads=threads,
            )
            await asyncio.gather(*(post(endpoint) for _ in range(16)))
            threads.close()

        server.run(post_many())
    assert [message["status"] for message in answers if "status" in message] == [200] * 16
    assert 0 < chats.most_parsed <= num_threads


class WatchedChats:
    """Reads chats, and records the threads that prepare them."""

    def __init__(self, chats: ChatCompletions) -> None:
        self._chats = chats
        self.parse = chats.parse
        self.threads: list[threading.Thread] = []

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        self.threads.append(threading.current_thread())
        return self._chats.prepare(fields, arrival_s)


@pytest.mark.parametrize(("num_held_bytes", "is_beside"), [(0, False), (2**12, True)])
def test_a_short_body_that_goes_on_with_a_long_conversation_is_prepared_beside_the_event_loop(
    num_held_bytes: int, is_beside: bool
) -> None:
    body = json.dumps(chat("Hi", max_tokens=1)).encode()
    with running_server() as server:
        limits = LimitsConfig()
        chats = WatchedChats(ChatCompletions(server.model, limits, ChatArchive(None)))

        loop_threads: list[threading.Thread] = []

        async def post() -> None:
            coming: list[Message] = [{"type": "http.request", "body": body}]

            async def receive() -> Message:
                return coming.pop() if coming else await asyncio.Future()

            async def send(message: Message) -> None:
                pass

            metrics, threads = Metrics(MODEL), PreparationThreads()
            admission = RequestAdmission(server.model, metrics, BodyReader(limits))
            scope = {"type": "http", "headers": []}
            open_exchange(scope, "one")
            await GeneratingEndpoint(
                lambda _: chats,
                server.model,
                metrics,
                admission,
                streams=Streams(10),
                threads=threads,
                num_held_bytes=lambda _: num_held_bytes,
            )(scope, receive, send)
            threads.close()
            loop_threads.append(threading.current_thread())

        server.run(post())
    assert [thread not in loop_threads for thread in chats.threads] == [is_beside]
