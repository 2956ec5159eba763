"""`thinking_token_budget` ends the reasoning in the family's own marks, and the answer follows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any  # JSON

import httpx
import pytest

from ouzel.parsers.base import Family
from ouzel.parsers.registry import FAMILIES, PLAIN, OutputFormat
from ouzel.parsers.response_template import read_response_template
from ouzel.parsers.templated_parser import make_templated_family
from tests.api.requests import Json, chat, read_events
from tests.api.server_setup import CHAT_TEMPLATE
from tests.api.serving import running_server

THOUGHT, RESPONSE = "Here is my thought process:", "Here is my response:"
MESSAGE = "<|start|>assistant"
ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|channel|>final<|message|>"
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": COUNT}}


@contextmanager
def serving(
    output_format: OutputFormat, engine_factory: str = "create_parrot"
) -> Iterator[httpx.Client]:
    server = running_server(
        engine_factory=engine_factory, output_format=output_format, trusts_request_template=True
    )
    with server as running, running.client() as http:
        yield http


def family(name: str) -> OutputFormat:
    [found] = [family for family in FAMILIES if name in family.names]
    return OutputFormat(found, found)


@pytest.fixture(scope="module")
def granite() -> Iterator[httpx.Client]:
    with serving(family("granite")) as http:
        yield http


@pytest.fixture(scope="module")
def guided_granite() -> Iterator[httpx.Client]:
    with serving(family("granite"), "create_grammar_parrot") as http:
        yield http


@pytest.fixture(scope="module")
def gpt_oss() -> Iterator[httpx.Client]:
    with serving(family("gpt_oss")) as http:
        yield http


def answer(
    http: httpx.Client, said: str, prompt_end: str, *, stream: bool = False, **fields: object
) -> tuple[str, str, int]:
    """Returns the reasoning, the content and the number of tokens of the reasoning."""
    body = (
        chat(said, chat_template=CHAT_TEMPLATE + prompt_end, temperature=0, max_tokens=200) | fields
    )
    shown = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    response = http.post("/v1/chat/completions", json=body | shown)
    assert response.status_code == 200, response.text
    answers: list[Any]
    answers = (
        [json.loads(event) for event in read_events(response) if event != "[DONE]"]
        if stream
        else [response.json()]
    )
    messages = [
        choice["delta" if stream else "message"] for each in answers for choice in each["choices"]
    ]
    reasoning, content = (
        "".join(str(message.get(field) or "") for message in messages)
        for field in ("reasoning", "content")
    )
    return reasoning, content, answers[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("num_tokens", [0, 1, 3, 8])
def test_reasoning_that_the_prompt_has_begun_ends_after_so_many_tokens(
    granite: httpx.Client, num_tokens: int, stream: bool
) -> None:
    said = "I think so. Yes"
    expected = (said[:num_tokens], said[num_tokens:], num_tokens)
    assert (
        answer(granite, said, THOUGHT, stream=stream, thinking_token_budget=num_tokens) == expected
    )


@pytest.mark.parametrize("num_tokens", [0, 1, 3])
def test_reasoning_that_the_model_begins_ends_after_so_many_tokens(
    granite: httpx.Client, num_tokens: int
) -> None:
    said = f" {THOUGHT}I think so. Yes"
    expected = ("I think so. Yes"[:num_tokens], "I think so. Yes"[num_tokens:], num_tokens)
    assert answer(granite, said, "", thinking_token_budget=num_tokens) == expected


@pytest.mark.parametrize("num_tokens", [-1, 11 + len(RESPONSE), 200])
def test_reasoning_within_the_budget_is_left_alone(granite: httpx.Client, num_tokens: int) -> None:
    said = f"I think so.{RESPONSE}\nYes, I think so."
    assert answer(granite, said, THOUGHT, thinking_token_budget=num_tokens) == (
        "I think so.",
        "Yes, I think so.",
        11,
    )


@pytest.mark.parametrize("num_tokens", range(12, 12 + len(RESPONSE)))
def test_an_end_that_is_being_written_is_not_written_twice(
    granite: httpx.Client, num_tokens: int
) -> None:
    said = f"I think so.{RESPONSE[: num_tokens - 11]} Yes"
    reasoning, content, num_counted = answer(
        granite, said, THOUGHT, thinking_token_budget=num_tokens
    )
    assert (reasoning, content, num_counted) == ("I think so.", " Yes", 11)


def test_an_answer_without_reasoning_is_left_alone(granite: httpx.Client) -> None:
    assert answer(granite, f"Yes. {THOUGHT}", "", thinking_token_budget=0) == (
        "",
        f"Yes. {THOUGHT}",
        0,
    )


@pytest.mark.parametrize("num_tokens", [0, 2, 5])
def test_gpt_oss_ends_its_analysis_wherever_that_comes(
    gpt_oss: httpx.Client, num_tokens: int
) -> None:
    said = f"{ANALYSIS}hm<|end|>{MESSAGE}{ANALYSIS}well, four<|end|>{MESSAGE}{FINAL}4"
    reasoning, content, num_counted = answer(
        gpt_oss, said, MESSAGE, thinking_token_budget=num_tokens
    )
    assert num_counted <= num_tokens
    assert content.endswith("4")
    assert len(reasoning.replace("\n\n", "")) == num_counted


@pytest.mark.parametrize(
    "fields", [{}, {"logprobs": True, "top_logprobs": 1}, {"n": 2}, {"stop": ["Yes"]}]
)
def test_a_form_follows(guided_granite: httpx.Client, fields: Json) -> None:
    body = chat(
        "hm, let me see", chat_template=CHAT_TEMPLATE + THOUGHT, temperature=0, max_tokens=200
    )
    body |= {"thinking_token_budget": 6, "response_format": FORM}
    response = guided_granite.post("/v1/chat/completions", json=body | fields)
    assert response.status_code == 200, response.text
    for choice in response.json()["choices"]:
        assert choice["message"]["reasoning"] == "hm, le"
        assert json.loads(choice["message"]["content"]).keys() == {"count"}


def test_a_completion_goes_on_with_a_reasoning_of_the_prompt(granite: httpx.Client) -> None:
    body = {
        "model": "parrot",
        "prompt": f"hm {THOUGHT}",
        "max_tokens": 25,
        "thinking_token_budget": 3,
    }
    response = granite.post("/v1/completions", json=body)
    assert response.json()["choices"][0]["text"] == f"hm {RESPONSE}He"


def test_a_response_keeps_to_the_budget(granite: httpx.Client) -> None:
    body = {"model": "parrot", "input": f"{THOUGHT}I think so. Yes", "thinking_token_budget": 7}
    response = granite.post("/v1/responses", json=body).json()
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["output"][1]["content"][0]["text"] == " so. Yes"
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == 7


def test_a_model_that_does_not_reason_keeps_to_any_budget() -> None:
    with serving(PLAIN) as http:
        assert answer(http, "Yes", "", thinking_token_budget=0) == ("", "Yes", 0)


def test_a_budget_that_cannot_be_enforced_is_refused(granite: httpx.Client) -> None:
    body = chat("Yes", use_beam_search=True, best_of=2, thinking_token_budget=5)
    error = granite.post("/v1/chat/completions", json=body).json()["error"]
    assert error["param"] == "thinking_token_budget"
    assert error["message"] == "thinking_token_budget must not be given in a beam search, given 5"

    with serving(OutputFormat(reasoning=family_of_patterns())) as http:
        response = http.post("/v1/chat/completions", json=chat("Yes", thinking_token_budget=5))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "thinking_token_budget"


def family_of_patterns() -> Family:
    fields = {"thinking": {"open_pattern": r"<think.*?>", "close": "</think>"}, "content": {}}
    return make_templated_family(
        read_response_template({"fields": fields, "start_anchor": "<|im_start|>assistant"})
    )
