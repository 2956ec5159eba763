"""Grammar and parser agree whether an answer begins before, inside or after its reasoning."""

import json
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.registry import FAMILIES, OutputFormat
from tests.api.requests import Json, chat, read_events
from tests.api.server_setup import CHAT_TEMPLATE
from tests.api.serving import running_server

COUNT = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": COUNT}}
JSON = '{"count": 4}'
THOUGHT, RESPONSE = "Here is my thought process:", "Here is my response:"
MESSAGE = "<|start|>assistant"
ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|channel|>final<|message|>"
OTHER_THOUGHT, OTHER_RESPONSE = "Here's my thought process:", "Here's my response:"


@pytest.fixture(scope="module")
def granite() -> Iterator[httpx.Client]:
    yield from serving("granite")


@pytest.fixture(scope="module")
def gpt_oss() -> Iterator[httpx.Client]:
    yield from serving("gpt_oss")


def serving(name: str) -> Iterator[httpx.Client]:
    [family] = [family for family in FAMILIES if name in family.names]
    server = running_server(
        engine_factory="create_grammar_parrot",
        output_format=OutputFormat(family, family),
        trusts_request_template=True,
    )
    with server as running, running.client() as http:
        yield http


def answer(
    http: httpx.Client, said: str, prompt_end: str, *, stream: bool, **fields: object
) -> tuple[str, str]:
    """Returns reasoning and content of an answer to a prompt with that end.

    The model would write `said` if the grammar let it.
    """
    body = chat(
        said,
        chat_template=CHAT_TEMPLATE + prompt_end,
        response_format=FORM,
        temperature=0,
        **fields,
    )
    response = http.post("/v1/chat/completions", json=body | {"stream": stream, "max_tokens": 200})
    assert response.status_code == 200, response.text
    messages: list[Json]
    if stream:
        messages = [
            json.loads(event)["choices"][0]["delta"]
            for event in read_events(response)
            if event != "[DONE]"
        ]
    else:
        messages = [response.json()["choices"][0]["message"]]
    reasoning, content = (
        "".join(str(message.get(field) or "") for message in messages)
        for field in ("reasoning", "content")
    )
    return reasoning, content


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("start", ["", THOUGHT, OTHER_THOUGHT])
@pytest.mark.parametrize("end", [RESPONSE, OTHER_RESPONSE])
def test_a_form_comes_after_the_reasoning_that_the_prompt_has_begun(
    granite: httpx.Client, start: str, end: str, stream: bool
) -> None:
    said = f"hm, four\n{end}\n{JSON}" if start else f"{THOUGHT}\nhm, four\n{end}\n{JSON}"
    assert answer(granite, said, start, stream=stream) == ("hm, four", JSON)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("start", [THOUGHT, OTHER_THOUGHT])
@pytest.mark.parametrize("end", [RESPONSE, OTHER_RESPONSE])
def test_a_form_comes_at_once_where_the_prompt_has_ended_the_reasoning(
    granite: httpx.Client, start: str, end: str, stream: bool
) -> None:
    said = f"{THOUGHT}\nhm, four\n{RESPONSE}\n{JSON}"
    reasoning, content = answer(granite, said, f"{start}\n{end}\n", stream=stream)
    assert reasoning == ""
    assert json.loads(content).keys() == {"count"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("start", [THOUGHT, OTHER_THOUGHT])
def test_an_answer_goes_on_inside_its_reasoning(
    granite: httpx.Client, start: str, stream: bool
) -> None:
    messages = [
        {"role": "user", "content": f" four.\n{RESPONSE}\n{JSON}"},
        {"role": "assistant", "content": f"{start} hm,"},
    ]
    continuing = {
        "messages": messages,
        "continue_final_message": True,
        "add_generation_prompt": False,
    }
    assert answer(granite, "", "", stream=stream, **continuing) == (" four.", JSON)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("start", [THOUGHT, OTHER_THOUGHT])
def test_a_mark_in_a_users_text_begins_no_reasoning(
    granite: httpx.Client, start: str, stream: bool
) -> None:
    messages = [
        {"role": "user", "content": f"{start} hm {JSON}"},
        {"role": "assistant", "content": "So:"},
    ]
    continuing = {
        "messages": messages,
        "continue_final_message": True,
        "add_generation_prompt": False,
    }
    reasoning, content = answer(granite, "", "", stream=stream, **continuing)
    assert reasoning == ""
    assert json.loads(content).keys() == {"count"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("prompt_end", "said", "expected"),
    [
        (f"Hi<|end|>{MESSAGE}", f"{ANALYSIS}hm<|end|>{MESSAGE}{FINAL}{JSON}", ("hm", JSON)),
        (f"Hi<|end|>{MESSAGE}", f"{FINAL}{JSON}", ("", JSON)),
        (f"{MESSAGE}{ANALYSIS}", f"hm<|end|>{MESSAGE}{FINAL}{JSON}", ("hm", JSON)),
        (f"{MESSAGE}{ANALYSIS}So", f"hm<|end|>{MESSAGE}{FINAL}{JSON}", ("hm", JSON)),
        (f"{MESSAGE}{FINAL}", JSON, ("", JSON)),
    ],
)
def test_a_form_of_gpt_oss_is_its_final_message(
    gpt_oss: httpx.Client, prompt_end: str, said: str, expected: tuple[str, str], stream: bool
) -> None:
    assert answer(gpt_oss, said, prompt_end, stream=stream) == expected
