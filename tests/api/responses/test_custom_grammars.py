"""The grammar of a custom tool holds for its calls."""

import re
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.families.qwen3_coder import QWEN3_CODER
from ouzel.parsers.registry import OutputFormat
from tests.api.requests import read_error
from tests.api.responses.strict import strict_response
from tests.api.responses.test_response import LOOK
from tests.api.responses.test_tools import (
    AGENTS,
    SEARCH,
    body,
    grammar,
    serve_calling_model,
    write_call,
)
from tests.api.serving import running_server
from tests.prompts.families import QWEN


@pytest.fixture(scope="module")
def grammar_http() -> Iterator[httpx.Client]:
    """Yields a client of a server with a real engine, which obeys grammars."""
    with (
        serve_calling_model(engine_factory="create_grammar_parrot") as server,
        server.client() as client,
    ):
        yield client


@pytest.mark.parametrize("choice", ["auto", {"type": "custom", "name": "patch"}])
@pytest.mark.parametrize(
    ("syntax", "definition"),
    [
        ("regex", r'\+"[0-9]{3}"\n'),
        ("lark", 'start: "+" Q DIGIT{3} Q LF\nQ: "\\""\n%import common (LF, DIGIT)'),
        (
            "lark",
            'start: "+" pair LF\npair: "\\"" (DIGIT{3} | pair) "\\""\n%import common (LF, DIGIT)',
        ),
    ],
)
def test_a_grammar_holds_for_every_call(
    grammar_http: httpx.Client, syntax: str, definition: str, choice: object
) -> None:
    """The model would end the text early, but the grammar forbids it."""
    tool, said = grammar(syntax, definition), write_call("patch", {"input": '+"12'})
    answer = grammar_http.post(
        "/v1/responses", json=body(said, tool, tool_choice=choice, max_output_tokens=200)
    )
    calls = [item for item in answer.json()["output"] if item["type"] == "custom_tool_call"]
    whole = [call["input"] for call in calls if call["status"] == "completed"]
    assert whole
    assert [text for text in whole if not re.fullmatch(r'\+"12[0-9]"\n', text)] == []


def test_a_model_that_writes_bare_text_is_held_to_no_recursion() -> None:
    with (
        running_server(chat_template=QWEN, output_format=OutputFormat(calls=QWEN3_CODER)) as server,
        server.client() as http,
    ):
        tool = grammar("lark", 'start: "(" start? ")"')
        error = read_error(http.post("/v1/responses", json=body("Hi", tool)))
    assert error["param"] == "tools"
    assert "custom tool 'patch': format.definition has recursion or %ignore" in str(
        error["message"]
    )


def test_a_grammar_in_the_form_of_a_chat_is_shown_in_the_form_of_responses(
    thinker_http: httpx.Client,
) -> None:
    nested = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
    custom = {"name": "patch", "description": "Edits files.", "format": nested}
    answer = thinker_http.post(
        "/v1/responses", json=body("hi", {"type": "custom", "custom": custom})
    )
    assert [tool.to_dict() for tool in strict_response(answer.text).tools] == [
        grammar("regex", "a+")
    ]


def test_the_response_repeats_the_tools_as_they_were_sent(
    thinker_http: httpx.Client, grammar_http: httpx.Client
) -> None:
    tools = [AGENTS, LOOK, grammar("regex", "[0-9]+"), SEARCH]
    shown = thinker_http.post("/v1/responses", json=body("Hi", *tools, tool_choice="none")).json()
    left_out = {**SEARCH, "left_out": True}
    assert shown["tools"] == [
        AGENTS,
        {**LOOK, "description": None, "strict": False},
        tools[2],
        left_out,
    ]
    choice = {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [
            {"type": "custom", "name": "tell", "namespace": "agents"},
            {"type": "function", "name": "look"},
        ],
    }
    shown = grammar_http.post(
        "/v1/responses", json=body("Hi", AGENTS, LOOK, tool_choice=choice)
    ).json()
    assert shown["tool_choice"] == choice
