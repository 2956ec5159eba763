"""Runs chat, embeddings and reranking in one server: docs/how-to/retrieval.md."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.documents.markdown import ROOT, read_blocks
from tests.serve.retrieval import (
    BLOCKS,
    MODELS,
    OPTIONS,
    QUESTION,
    TEXTS,
    Retrieval,
    find_program,
    serving_retrieval,
)
from tests.small_encoders import SIZE

pytestmark = pytest.mark.serves
ALL_TEXTS = [text for texts in TEXTS.values() for text in texts]
NUM_CLIENTS = 64
Request = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def retrieval(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retrieval]:
    with serving_retrieval(tmp_path_factory.mktemp("retrieval")) as retrieval:
        yield retrieval


def test_the_page_shows_the_options_file() -> None:
    [shown] = [block.text for block in BLOCKS if block.language == "yaml"]

    assert shown == OPTIONS.read_text()


def test_the_server_lists_the_three_models_with_their_tasks(retrieval: Retrieval) -> None:
    models = httpx.get(f"{retrieval.server.url}/models", timeout=None).json()["data"]

    assert [(model["id"], model["capabilities"]) for model in models] == [
        ("chat", ["completion", "chat", "tools", "reasoning"]),
        ("embeddings", ["embedding", "rerank"]),
        ("reranker", ["rerank"]),
    ]


def test_the_program_with_openais_client_answers(retrieval: Retrieval) -> None:
    before = retrieval.count_answers()
    lines = retrieval.run(sys.executable, find_program("def embed("), os.environ)
    after = retrieval.count_answers()

    assert "".join(lines)
    assert [after[model] - before[model] for model in MODELS] == [1, 2, 1]


@pytest.mark.release("LangChain, which takes seconds to import")
def test_the_program_with_langchain_answers_from_the_best_texts(retrieval: Retrieval) -> None:
    before = retrieval.count_answers()
    *answer, sources = retrieval.run(sys.executable, find_program("langchain"), os.environ)
    after = retrieval.count_answers()

    assert "".join(answer)
    assert sources == " ".join(["Sources:", *retrieval.rank_files()])
    assert [after[model] - before[model] for model in MODELS] == [1, 2, 1]


def test_the_program_of_the_page_about_embeddings_prints_the_length(retrieval: Retrieval) -> None:
    blocks = read_blocks(ROOT / "docs" / "how-to" / "embeddings.md")
    program = find_program("embeddings.create", blocks)
    program = program.replace("bge-small-en-v1.5", "embeddings")

    assert retrieval.run(sys.executable, program, os.environ) == [str(SIZE)]


def test_the_nearest_texts_have_words_of_the_question(retrieval: Retrieval) -> None:
    body = {"model": "embeddings", "query": QUESTION, "documents": ALL_TEXTS, "top_n": 1}
    [best] = httpx.post(f"{retrieval.server.url}/rerank", json=body, timeout=None).json()["results"]

    assert "dipper" in ALL_TEXTS[best["index"]].lower()


def test_each_refusal_of_the_page_comes_from_the_server(retrieval: Retrieval) -> None:
    body = {"model": "embeddings", "messages": [{"role": "user", "content": QUESTION}]}
    refused = httpx.post(f"{retrieval.server.url}/chat/completions", json=body, timeout=None)
    [shown] = [block.text.strip() for block in BLOCKS if not block.language]

    assert (refused.status_code, refused.json()["error"]["message"]) == (400, shown)


def make_request(number: int) -> Request:
    """Returns a request to the model whose turn it is; every other request names no model."""
    name = {"model": MODELS[number % 3]} if number % 2 else {}
    text = ALL_TEXTS[number % len(ALL_TEXTS)]
    match MODELS[number % 3]:
        case "chat":
            messages = [{"role": "user", "content": text}]
            return "/chat/completions", {
                **name,
                "messages": messages,
                "temperature": 0,
                "max_tokens": 8 + number,
            }
        case "embeddings":
            return "/embeddings", {**name, "input": [text, *ALL_TEXTS[: number % 4]]}
        case _:
            return "/rerank", {**name, "query": text, "documents": ALL_TEXTS}


def read_numbers(answer: dict[str, Any]) -> list[float]:
    """Returns the scores of a ranking in the order of its documents, or all values of vectors."""
    if "results" in answer:
        scores = {entry["index"]: entry["relevance_score"] for entry in answer["results"]}
        return [scores[index] for index in sorted(scores)]
    return [value for entry in answer["data"] for value in entry["embedding"]]


async def ask(client: httpx.AsyncClient, request: Request) -> dict[str, Any]:
    path, body = request
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def leave(client: httpx.AsyncClient, request: Request) -> None:
    """Leaves after the first byte of a chat; leaves others while they are being computed."""
    path, body = request
    if path == "/chat/completions":
        body = {**body, "stream": True, "max_tokens": 4000, "ignore_eos": True}
        async with client.stream("POST", path, json=body) as response:
            async for _ in response.aiter_bytes():
                return
    asking = asyncio.create_task(ask(client, request))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_many_mixed_requests_reach_their_models_while_others_leave(
    retrieval: Retrieval,
) -> None:
    requests = [make_request(number) for number in range(NUM_CLIENTS)]
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=retrieval.server.url, timeout=None, limits=limits
    ) as client:
        alone = [await ask(client, request) for request in requests]
        together, _ = await asyncio.gather(
            asyncio.gather(*(ask(client, request) for request in requests)),
            asyncio.gather(*(leave(client, request) for request in requests[::4])),
        )
        while await count_unfinished(client, retrieval):
            await asyncio.sleep(0.01)

    for number, (one, other) in enumerate(zip(together, alone, strict=True)):
        assert one["model"] == other["model"] == MODELS[number % 3]
        if "choices" in one:
            assert one["choices"][0]["message"] == other["choices"][0]["message"]
        else:
            assert read_numbers(one) == pytest.approx(read_numbers(other), abs=1e-4)


async def count_unfinished(client: httpx.AsyncClient, retrieval: Retrieval) -> int:
    """Returns the number of requests that wait or run, of all models."""
    page = (await client.get(f"{retrieval.server.root}/metrics")).text
    gauges = re.findall(r"^ouzel_num_requests_(?:running|waiting)\{.*\} (\d+)", page, re.M)
    assert len(gauges) == 2 * len(MODELS)
    return sum(map(int, gauges))
