"""Random combinations of parameters: a whole answer equals the joined chunks of its stream.

This holds for raw HTTP and for the `openai` client, at temperature 0. Both modes use the same words
to refuse a combination that cannot be honoured.
"""

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any  # JSON

import httpx
import msgspec
import openai
import pytest

from ouzel.api.openai.completions import CompletionRequest
from ouzel.wire.chat_request import ChatCompletionRequest
from tests.serve.answers import Json, essence, put_together, read_chunks
from tests.serve.running import RunningServer, serving

QUESTIONS = (
    "Hello!",
    "What is 12 plus 30?",
    "Repeat after me: the quick brown fox",
    "Spell the word window.",
)
SHARED: dict[str, tuple[object, ...]] = {
    "add_special_tokens": (True, False),
    "allowed_token_ids": (list(range(300, 900)),),
    "bad_words": (["the"], ["a", "You"]),
    "cache_salt": ("a", "b"),
    "do_sample": (False,),
    "echo": (True,),
    "ebnf": ('root ::= "a" | "b"',),
    "frequency_penalty": (-0.5, 0.5, 2),
    "grammar": ('root ::= "a" | "b"', {"type": "regex", "value": "[0-9]+"}),
    "guided_choice": (["one", "two or three"],),
    "guided_grammar": ('root ::= "a" | "b"',),
    "guided_json": ({"type": "integer"},),
    "guided_regex": ("[a-f]{3,9}",),
    "ignore_eos": (True,),
    "include_stop_str_in_output": (True, False),
    "json_schema": ({"type": "integer"},),
    "logit_bias": ({"300": 5, "301": -100}, {"400": 100}),
    "logprob_token_ids": ([300, 301],),
    "max_tokens": (1, 5, 20),
    "metadata": ({"a": "b"},),
    "min_p": (0.1,),
    "min_tokens": (1, 4),
    "n": (1, 2, 3),
    "no_repeat_ngram_size": (2,),
    "num_assistant_tokens": (0,),
    "presence_penalty": (-0.5, 1.5),
    "priority": (-1, 5),
    "prompt_cache_key": ("a",),
    "prompt_logprobs": (0, 2),
    "regex": ("[a-f]{3,9}",),
    "repeat_last_n": (-1, 0, 3),
    "repetition_penalty": (0.8, 1.3),
    "response_format": ({"type": "json_object"}, {"type": "text"}),
    "return_token_ids": (True,),
    "return_tokens_as_token_ids": (True,),
    "safety_identifier": ("a",),
    "seed": (0, 7),
    "skip_special_tokens": (True, False),
    "spaces_between_special_tokens": (True, False),
    "stop": ("e", ["o", "the"], ["zzz"], "."),
    "stop_token_ids": ([300, 301, 302], list(range(500, 700))),
    "thinking_token_budget": (0, 5),
    "top_k": (-1, 1, 5),
    "top_p": (0.5, 0.9),
    "structured_outputs": ({"regex": "[0-9]+"},),
    "truncate_prompt_tokens": (5,),
    "truncation_side": ("left", "right"),
    "typical_p": (0.5,),
    "user": ("a",),
}
TOGETHER: tuple[Json, ...] = (  # fields that need each other
    {"best_of": 3, "n": 2},
    {"use_beam_search": True, "best_of": 3, "n": 2, "length_penalty": 0.5},
    {"num_beams": 3, "num_return_sequences": 2, "early_stopping": True, "length_penalty": 2.0},
    {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0, "n": 2},
)
ALWAYS = {
    "model",
    "messages",
    "prompt",
    "stream",
    "stream_options",
    "temperature",
    "logprobs",
    "top_logprobs",
}
OF_TOOLS = {  # calls have ids of their own each time
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "enable_tool_guided_generation",
    "functions",
    "function_call",
}
NOT_WITH_THIS_SERVER = {
    "assistant_confidence_threshold",
    "chat_template",
    "continue_final_message",
    "documents",
    "enable_thinking",
    "max_ngram_size",  # nothing is looked up
    "store",  # the server stores nothing
    "suffix",
    "thinking",
}
CHAT: dict[str, tuple[object, ...]] = SHARED | {
    "add_generation_prompt": (True, False),
    "chat_template_kwargs": ({"enable_thinking": False}, {"enable_thinking": True}),
    "include_reasoning": (True, False),
    "max_completion_tokens": (3, 12),
    "prediction": ({"type": "content", "content": "Hello! How can I help you?"},),
    "reasoning_effort": ("low", "high"),
    "reasoning_format": ("auto", "none"),
    "separate_reasoning": (True, False),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server in f32, without prefix cache and speculation: answers are reproducible."""
    exact = (
        "--precision",
        "f32",
        "--kv-cache-dtype",
        "f32",
        "--no-prefix-caching",
        "--no-prompt-lookup",
    )
    with serving(*exact, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.mark.parametrize("body_type", [ChatCompletionRequest, CompletionRequest])
def test_every_field_takes_part(body_type: type[msgspec.Struct]) -> None:
    tried = (
        CHAT.keys()
        | ALWAYS
        | OF_TOOLS
        | NOT_WITH_THIS_SERVER
        | {name for fields in TOGETHER for name in fields}
    )
    assert set(body_type.__struct_encode_fields__) <= tried


def combination(
    random: Random, samples: dict[str, tuple[object, ...]], known: Iterable[str]
) -> Json:
    """Draws up to six fields of the endpoint."""
    names = random.sample(sorted(samples.keys() & set(known)), random.randrange(7))
    chosen = {"max_tokens": 8, "temperature": 0} | {
        name: random.choice(samples[name]) for name in names
    }
    return chosen | (random.choice(TOGETHER) if random.random() < 0.2 else {})


def chat_body(random: Random) -> Json:
    body = combination(random, CHAT, ChatCompletionRequest.__struct_encode_fields__)
    if random.random() < 0.5:
        body |= {"logprobs": True, "top_logprobs": random.randrange(4)}
    return body | {
        "model": "ouzel-demo",
        "messages": [{"role": "user", "content": random.choice(QUESTIONS)}],
    }


def completion_body(random: Random) -> Json:
    body = combination(random, SHARED, CompletionRequest.__struct_encode_fields__)
    if random.random() < 0.5:
        body["logprobs"] = random.randrange(4)
    return body | {"model": "ouzel-demo", "prompt": random.choice(QUESTIONS)}


BODIES = {"chat/completions": chat_body, "completions": completion_body}


@pytest.mark.parametrize("path", BODIES)
def test_a_whole_answer_is_its_stream_put_together(
    server: RunningServer, path: str, before_release: bool
) -> None:
    random = Random(path)
    num_asked, num_answered = 100 if before_release else 25, 0
    with (
        httpx.Client(base_url=server.url, timeout=None) as http,
        openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client,
    ):
        for _ in range(num_asked):
            body = BODIES[path](random)
            whole = http.post(path, json=body)
            streamed = http.post(path, json=streaming(body, random))
            if whole.status_code == 400:
                assert read_refusal(streamed) == whole.json(), body
                continue
            num_answered += 1
            expected = essence(whole.json())
            assert essence(put_together(read_chunks(streamed))) == expected, body
            assert essence(asked_by_the_client(client, path, body)) == expected, body
            pieces = asked_by_the_client(client, path, streaming(body, random))
            assert essence(put_together(pieces)) == expected, body
    assert num_answered > 0.6 * num_asked


def streaming(body: Json, random: Random) -> Json:
    options = {"include_usage": True, "continuous_usage_stats": random.random() < 0.3}
    return body | {"stream": True, "stream_options": options}


def read_refusal(response: httpx.Response) -> Json:
    """Returns the body of the refusal; a stream that has begun has it in its last event.

    The server notices only then that the fields leave no token.
    """
    last = response.text.rstrip("\n").rpartition("\n\n")[2].removeprefix("data: ")
    refusal: Json = json.loads(last)
    return refusal


def asked_by_the_client(client: openai.OpenAI, path: str, body: Json) -> Any:
    """Returns the answer, or the list of chunks.

    The client sends fields that it does not know as `extra_body`.
    """
    own = {name: body[name] for name in ("model", "messages", "prompt", "stream") if name in body}
    extra = {name: value for name, value in body.items() if name not in own}
    create = (
        client.chat.completions.create if path == "chat/completions" else client.completions.create
    )
    answer = create(**own, extra_body=extra)
    if "stream" in body:
        return [chunk.model_dump(exclude_unset=True) for chunk in answer]
    return answer.model_dump(exclude_unset=True)
