"""Fixtures: they start a fake engine and run requests on it."""

from collections.abc import AsyncIterator, Callable

import pytest

from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.generation import (
    Generation,
    GenerationRequest,
    SeveralGenerations,
)
from ouzel.observability import Metrics
from ouzel.parsers.base import Parser
from ouzel.parsers.plain import PlainParser
from tests.api.byte_tokens import FAIL
from tests.generation.generations import FATAL, Run, RunSeveral, make_model, make_request


@pytest.fixture
async def engine() -> AsyncIterator[EngineClient]:
    options: dict[str, object] = {
        "vocab_size": 260,
        "failing_token_id": FAIL,
        "fatal_token_id": FATAL,
    }
    client = EngineClient(
        EngineSpec(factory="tests.api.engines:create_parrot", options=options), in_thread=True
    )
    await client.start()
    yield client
    await client.close()


@pytest.fixture
def run(engine: EngineClient) -> Run:
    def run(
        said: str,
        *,
        max_tokens: int = 20,
        stop: tuple[str, ...] = (),
        n: int = 1,
        make_parser: Callable[[], Parser] = PlainParser,
        metrics: Metrics | None = None,
    ) -> Generation:
        asked = make_request(said, max_tokens=max_tokens, stop=stop, n=n)
        return Generation(
            asked, make_model(engine, make_parser), metrics or Metrics("parrot"), key_id=None
        )

    return run


@pytest.fixture
def run_several(engine: EngineClient) -> RunSeveral:
    def run_several(*requests: GenerationRequest) -> SeveralGenerations:
        return SeveralGenerations(requests, make_model(engine), Metrics("parrot"), key_id=None)

    return run_several
