"""An app is asked within this process; its engine repeats the user's text."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from ouzel.api.app import create_app
from ouzel.client.app_client import AppClient
from ouzel.client.base import ApiFailure
from ouzel.engine_client import EngineClient
from tests.api.server_setup import ServerSetup


@asynccontextmanager
async def asked_app(**options: object) -> AsyncIterator[AppClient]:
    setup = ServerSetup(options)
    engine = EngineClient(setup.engine_spec(), in_thread=True)
    await engine.start()
    model = setup.build_model(engine)
    client = AppClient(create_app(model, setup.limits, setup.config))
    await client.start()
    try:
        yield client
    finally:
        await client.close()
        await engine.close()
        model.renderer.close()


def chat(text: str, **fields: object) -> bytes:
    return msgspec.json.encode(
        {"model": "parrot", "messages": [{"role": "user", "content": text}], **fields}
    )


def said(event: bytes) -> str:
    choices = msgspec.json.decode(event)["choices"]
    return (choices[0]["delta"].get("content") or "") if choices else ""


async def test_an_answer_comes_whole() -> None:
    async with asked_app() as client:
        answer = await client.ask("POST", "/v1/chat/completions", chat("Hello!"))

    assert answer.status == 200
    assert msgspec.json.decode(answer.body)["choices"][0]["message"]["content"] == "Hello!"


async def test_paths_with_a_query_and_without_a_body() -> None:
    async with asked_app() as client:
        models = await client.ask("GET", "/v1/models?limit=1")

    assert msgspec.json.decode(models.body)["data"][0]["id"] == "org/parrot"


async def test_a_stream_comes_event_by_event() -> None:
    async with (
        asked_app() as client,
        client.events("/v1/chat/completions", chat("Hello!", stream=True)) as events,
    ):
        pieces = [said(event) async for event in events]

    assert "".join(pieces) == "Hello!"


async def test_leaving_a_stream_aborts_its_request() -> None:
    async with asked_app(step_s=0.01) as client:
        body = chat("Hello!" * 100, stream=True, max_tokens=600)
        async with client.events("/v1/chat/completions", body) as events:
            await anext(events)
        while await num_aborts(client) == 0:
            await asyncio.sleep(0.01)


async def num_aborts(client: AppClient) -> int:
    metrics = (await client.ask("GET", "/metrics")).body.decode()
    count = re.search(r"^ouzel_num_aborts_total{.*} (\d+)$", metrics, re.MULTILINE)
    assert count is not None
    return int(count[1])


async def test_a_refusal_says_what_the_server_says() -> None:
    async with asked_app() as client:
        with pytest.raises(
            ApiFailure, match=r"^400: temperature must be <= 2\.0, given 9$"
        ) as failure:
            async with client.events(
                "/v1/chat/completions", chat("Hello!", stream=True, temperature=9)
            ):
                raise AssertionError("it is refused")

    assert failure.value.http_status == 400


async def test_an_answer_of_an_engine_that_fails_is_an_error_event_and_breaks_off() -> None:
    async with asked_app() as client:
        seen = []
        with pytest.raises(ApiFailure, match="broke off"):
            async with client.events(
                "/v1/chat/completions", chat("a|fail|", stream=True)
            ) as events:
                async for event in events:
                    seen.append(msgspec.json.decode(event))

    assert "error" in seen[-1]


async def test_close_may_be_repeated() -> None:
    async with asked_app() as client:
        await client.close()
