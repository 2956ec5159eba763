"""Prompts have the wanted length and the shape of the workload; a seed always gives the same."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ouzel.bench.conversation import Conversation
from ouzel.bench.dataset import InvalidDataset, read_conversations, read_dataset
from ouzel.bench.lengths import Fixed, Uniform
from ouzel.bench.prompt_texts import PromptTexts, find_prompt_texts, tokenize
from ouzel.bench.workloads import Shape, Workload, make_conversations
from ouzel.client.base import ApiClient
from ouzel.client.http_client import HttpClient
from tests.api.server_setup import MODEL
from tests.api.serving import running_server
from tests.client.canned_server import canned_server, json_answer

SHAPE = Shape(Workload.RANDOM, num_requests=10, input_lens=Uniform(5, 40), output_lens=Fixed(7))


@asynccontextmanager
async def texts_of_a_server() -> AsyncGenerator[tuple[PromptTexts, ApiClient], None]:
    with running_server() as server:
        client = HttpClient(server.url)
        try:
            yield await find_prompt_texts(client, MODEL), client
        finally:
            await client.close()


def texts(conversations: list[Conversation]) -> list[str]:
    return [turn.messages[0]["content"] for each in conversations for turn in each.turns]


async def test_prompts_have_as_many_tokens_as_the_server_counts() -> None:
    async with texts_of_a_server() as (prompts, client):
        assert prompts.counts_tokens
        conversations = await make_conversations(SHAPE, prompts, "a")
        lens = [each.turns[0].input_len for each in conversations]
        counts = [len(await tokenize(client, MODEL, text)) for text in texts(conversations)]
    assert counts == lens
    assert len(set(lens)) > 1


async def test_a_seed_asks_the_same_and_another_asks_otherwise() -> None:
    async with texts_of_a_server() as (prompts, _):
        first, again, other = [
            await make_conversations(SHAPE, prompts, seed) for seed in ("a", "a", "b")
        ]
    assert first == again
    assert not set(texts(first)) & set(texts(other))


async def test_a_server_that_counts_no_tokens_gets_words() -> None:
    async with canned_server(json_answer("404 Not Found", "{}")) as server:
        client = HttpClient(server.url)
        prompts = await find_prompt_texts(client, MODEL)
        [only] = await make_conversations(
            replace(SHAPE, num_requests=1, input_lens=Fixed(12)), prompts, "a"
        )
        await client.close()
    assert not prompts.counts_tokens
    assert len(texts([only])[0].split()) == 12


async def test_prefixes_are_shared_as_often_as_there_are_few() -> None:
    shape = replace(
        SHAPE, workload=Workload.SHARED_PREFIX, input_lens=Fixed(5), prefix_len=60, num_prefixes=2
    )
    async with texts_of_a_server() as (prompts, _):
        conversations = await make_conversations(shape, prompts, "a")
    heads = [text[:60] for text in texts(conversations)]
    assert len(set(heads)) == 2
    assert heads[0] == heads[2] == heads[4]
    assert len(set(texts(conversations))) == 10
    assert {each.turns[0].input_len for each in conversations} == {65}


async def test_turns_are_requests_and_the_last_conversation_may_be_shorter() -> None:
    shape = replace(SHAPE, workload=Workload.MULTI_TURN, num_turns=4)
    async with texts_of_a_server() as (prompts, _):
        conversations = await make_conversations(shape, prompts, "a")
    assert [len(each.turns) for each in conversations] == [4, 4, 2]


async def test_tools_are_offered() -> None:
    async with texts_of_a_server() as (prompts, _):
        conversations = await make_conversations(
            replace(SHAPE, workload=Workload.TOOLS), prompts, "a"
        )
    assert {len(each.tools) for each in conversations} == {4}


# Prompts from the user's file


def dataset(directory: Path, *lines: object) -> Path:
    path = directory / "prompts.jsonl"
    path.write_text(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines) + "\n\n"
    )
    return path


def test_lines_are_asked_in_order_and_again(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    path = dataset(
        tmp_path,
        {"prompt": "one", "output_tokens": 3},
        {"messages": chat, "max_tokens": 4},
        {"prompt": "two"},
    )
    turns = [each.turns[0] for each in read_conversations(read_dataset(path), [9, 9, 9, 9])]
    assert [turn.messages[-1]["content"] for turn in turns] == ["one", "Hello", "two", "one"]
    assert [turn.max_tokens for turn in turns] == [3, 4, 9, 3]
    assert list(turns[1].messages) == chat


def test_a_mark_of_the_encoding_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "één"}\r\n', encoding="utf-8-sig")
    assert [line.prompt for line in read_dataset(path)] == ["één"]


def test_a_line_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "een"}\n{"prompt": "één"}\n', encoding="latin-1")
    with pytest.raises(InvalidDataset, match=r"line 2: .*utf-8"):
        read_dataset(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 1: .*JSON|line 1: Input"),
        ({}, "line 1: must have either prompt or messages"),
        ({"prompt": "a", "messages": [{"role": "user"}]}, "line 1: must have either"),
        ({"prompt": "a", "tokens": 1}, "line 1: .*`tokens`"),
        ({"prompt": "a", "max_tokens": 1, "output_tokens": 1}, "line 1: has both"),
        ({"prompt": "a", "max_tokens": 0}, "line 1: the length of an answer must be >= 1, given 0"),
        ("", "has no prompts"),
    ],
)
def test_a_line_without_a_prompt_is_named(tmp_path: Path, line: object, reason: str) -> None:
    with pytest.raises(InvalidDataset, match=f"prompts.jsonl.*({reason})"):
        read_dataset(dataset(tmp_path, line))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataset, match=r"none.jsonl: No such file"):
        read_dataset(tmp_path / "none.jsonl")
