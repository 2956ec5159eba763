"""A call within open reasoning becomes a call if the model wrote its mark as a control token."""

import json
from typing import Any  # JSON

import msgspec
import pytest

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from ouzel.types.engine_request import EngineRequest
from tests.api.byte_tokens import END, byte_tokenizer
from tests.api.requests import chat, read_events
from tests.api.server_setup import CHAT_TEMPLATE
from tests.api.serving import running_server

MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
TOKENIZER = byte_tokenizer(*MARKS)
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "Turku"}}\n</tool_call>'
SAID = f"<think>I look.\n{CALL}"
# a request without tools does not show these marks, because they are special tokens
HIDDEN = CALL.replace("<tool_call>", "").replace("\n</tool_call>", "")
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
TEMPLATE = "{% if tools %}{{ tools | tojson }}{% endif %}" + CHAT_TEMPLATE
BOTH = OutputFormat(HERMES, HERMES)


def create_caller(options: dict[str, object]) -> FakeEngine:
    """Makes an engine that always answers with `SAID`, with marks as control tokens."""
    token_ids = TOKENIZER.encode(SAID, add_special_tokens=False)

    def say(request: EngineRequest, position: int) -> int:
        return token_ids[position] if position < len(token_ids) else END

    return FakeEngine(msgspec.convert(options, FakeOptions), say)


def answer(
    output_format: OutputFormat, engine: str, said: str, *, stream: bool, **fields: object
) -> Any:
    """Returns reasoning, content and calls of a chat with one tool."""
    factory = engine if engine == "create_parrot" else f"{__name__}:{engine}"
    body = chat(said, tools=[TOOL]) | fields | {"stream": stream}
    setup = running_server(
        engine_factory=factory,
        tokenizer=TOKENIZER,
        chat_template=TEMPLATE,
        output_format=output_format,
    )
    with setup as server, server.client() as http:
        response = http.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    if stream:
        chunks = [json.loads(event) for event in read_events(response) if event != "[DONE]"]
        messages = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    else:
        messages = [response.json()["choices"][0]["message"]]
    reasoning, content = (
        "".join(str(message.get(name) or "") for message in messages)
        for name in ("reasoning", "content")
    )
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or []]
    return reasoning, content, "".join(call.get("arguments", "") for call in calls)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("output_format", "engine", "fields", "expected"),
    [
        (BOTH.ending_at_calls(MARKS), "create_caller", {}, ("I look.", "", '{"at": "Turku"}')),
        (
            BOTH.ending_at_calls(MARKS),
            "create_caller",
            {"stop": ["?", "l>x"]},
            ("I look.", "", '{"at": "Turku"}'),
        ),
        (BOTH.ending_at_calls(MARKS), "create_caller", {"stop": [".\n<tool"]}, ("I look", "", "")),
        (
            BOTH.ending_at_calls(MARKS),
            "create_caller",
            {"tools": None},
            (f"I look.\n{HIDDEN}", "", ""),
        ),
        (BOTH, "create_caller", {}, (f"I look.\n{CALL}", "", "")),  # --calls-in-reasoning text
        # marks in other tokens
        (BOTH.ending_at_calls(MARKS), "create_parrot", {}, (f"I look.\n{CALL}", "", "")),
    ],
)
def test_a_call_within_the_reasoning(
    output_format: OutputFormat,
    engine: str,
    fields: dict[str, object],
    expected: object,
    stream: bool,
) -> None:
    assert answer(output_format, engine, SAID, stream=stream, **fields) == expected
