"""Three APIs show the model the same ten turns with tool calls, and its cache has most of them."""

import itertools
from collections.abc import Iterator

import httpx
import pytest

from tests.api.responses.ways import WAYS, Send, Way, build_output, list_calls
from tests.serve.answers import Json
from tests.serve.running import RunningServer, serving
from tests.serve.test_responses import WEATHER

BLOCK_SIZE = 32  # tokens; only whole blocks are shared
FIELDS: Json = {
    "model": "ouzel-demo",
    "tools": [WEATHER],
    "temperature": 0,
    "parallel_tool_calls": False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(
        "--precision", "f32", "--kv-cache-dtype", "f32", cache_dir=tmp_path_factory.mktemp("cache")
    ) as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=None) as http:
        yield http


def ten_turns(send: Send, **fields: object) -> list[Json]:
    """Each is a question, a call, its output and an answer: two responses."""
    answers = []
    for turn in range(10):
        question = {
            "role": "user",
            "content": f"What is the weather in {('Rome', 'Oslo')[turn % 2]}, question {turn}?",
        }
        answers.append(
            send(question, tool_choice="required", max_output_tokens=60, **FIELDS, **fields)
        )
        [call] = list_calls(answers[-1])
        output = build_output(call, f'{{"temperature": {turn}}}')
        answers.append(send(output, max_output_tokens=30, **FIELDS, **fields))
    return answers


def num_input(answer: Json) -> int:
    num_tokens: int = answer["usage"]["input_tokens"]
    return num_tokens


def num_cached(answer: Json) -> int:
    num_tokens: int = answer["usage"]["input_tokens_details"]["cached_tokens"]
    return num_tokens


@pytest.mark.parametrize("way", WAYS)
def test_later_turns_find_the_earlier_ones_in_the_cache(http: httpx.Client, way: Way) -> None:
    answers = ten_turns(way(http), cache_salt=way.__name__)
    assert num_cached(answers[0]) == 0
    for before, after in itertools.pairwise(answers):
        assert num_cached(after) > 0
        assert num_cached(after) >= num_cached(before)
        assert (
            num_input(before) - num_cached(after) < 2 * BLOCK_SIZE
        )  # a prompt's end is not repeated in the next
    assert num_cached(answers[-1]) > 5 * num_cached(answers[1])


@pytest.mark.release("three ways of ten turns")
def test_three_ways_show_the_model_the_same(http: httpx.Client) -> None:
    """The cache compares tokens, so a hit proves that both APIs gave the model the same prompt."""
    first, *others = [ten_turns(way(http)) for way in WAYS]
    for other in others:
        for answer, same in zip(first, other, strict=True):
            assert num_input(same) == num_input(answer)
            assert num_cached(same) >= (num_input(answer) - 1) // BLOCK_SIZE * BLOCK_SIZE
            assert said(same) == said(answer)


def said(answer: Json) -> list[object]:
    return [item.get("arguments") or item["content"] for item in answer["output"]]
