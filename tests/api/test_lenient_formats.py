"""--lenient-formats drops a format that cannot be honoured, and a header says so."""

import json
import logging
from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import LimitsConfig
from ouzel.options.options import read_options
from ouzel.parsers.registry import OutputFormat
from tests.api.lenient import (
    CHAT,
    HEADER,
    LOOKS_AHEAD,
    UNIQUE,
    schema_format,
    serve_lenient_formats,
    tool,
)
from tests.api.requests import Json, chat, join_content, read_error, read_events
from tests.api.responses.sockets import connect_socket, read_error_event
from tests.api.serving import running_server

COMPLETIONS = "/v1/completions"
NO_SCHEMA: Json = {"type": "no"}
IMPOSSIBLE: Json = {"guided_grammar": "start: T\nT: /a/ & /b/"}  # only the engine refuses it
TOO_WIDE: Json = {  # the engine refuses it after the first tokens
    "guided_grammar": "start: /[a-zA-Z]{5}/ a\na: "
    + " | ".join(f'"b{number}" a' for number in range(6000))
}


@pytest.fixture(scope="module")
def lenient() -> Iterator[httpx.Client]:
    with serve_lenient_formats() as server, server.client() as http:
        yield http


@pytest.fixture(scope="module")
def unreasoning() -> Iterator[httpx.Client]:
    setup = running_server(
        engine_factory="create_grammar_parrot",
        output_format=OutputFormat(),
        has_lenient_formats=True,
    )
    with setup as server, server.client() as http:
        yield http


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (schema_format({"type": "no"}), "response_format.json_schema.schema: "),
        ({"response_format": {"type": 5}}, "response_format.type must be a string, given 5"),
        ({"response_format": {}}, "response_format.type is required"),
        ({"response_format": {"type": "colour"}}, "response_format: "),
        (
            {"response_format": {"type": "json_schema"}},
            "response_format.json_schema must be an object, given null",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema",
        ),
        (
            {"response_format": {"type": "text", "colour": "réd"}},
            "response_format.colour is not a field of this object",
        ),
        ({"response_format": {"type": "regex", "pattern": "("}}, "response_format: "),
        ({"guided_json": "{"}, "guided_json is not valid JSON"),
        ({"grammar": "root ::= x"}, "the rule 'x' is missing"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_format_that_cannot_be_made_is_dropped(
    lenient: httpx.Client, caplog: pytest.LogCaptureFixture, fields: Json, reason: str, stream: bool
) -> None:
    answer = lenient.post(CHAT, json=chat("Hello", temperature=0, stream=stream, **fields))

    assert answer.status_code == 200, answer.text
    text = (
        join_content(read_events(answer))
        if stream
        else answer.json()["choices"][0]["message"]["content"]
    )
    assert text == "Hello"
    assert reason in answer.headers[HEADER]
    assert answer.headers[HEADER].isascii()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [reason in record.getMessage() for record in warnings] == [True]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            {
                "type": "array",
                "items": {"const": 7},
                "minItems": 2,
                "maxItems": 2,
                "uniqueItems": True,
            },
            "[7,7]",
        ),
        (
            {
                "$defs": {"a": {"const": 7, "not": {}}},
                "type": "array",
                "prefixItems": [{"$ref": "#/$defs/a"}],
            },
            "[7]",
        ),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}], "contains": {}}, "7"),
        ({"type": "string", "format": "colour"}, '"7"'),
        (
            {
                "type": "integer",
                "if": {"const": 1},
                "then": {"const": 1},
                "unevaluatedItems": False,
            },
            "7",
        ),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_the_rest_of_a_schema_counts_without_the_keywords_that_cannot(
    lenient: httpx.Client, schema: Json, text: str, strict: bool
) -> None:
    form: Json = {
        "type": "json_schema",
        "json_schema": {"name": "any", "schema": schema, "strict": strict},
    }
    answer = lenient.post(CHAT, json=chat(text, temperature=0, max_tokens=40, response_format=form))
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"].replace(" ", "") == text
    assert answer.headers[HEADER].startswith("response_format.json_schema.schema: ")
    other = lenient.post(
        CHAT, json=chat("Hello", temperature=0, max_tokens=40, response_format=form)
    )
    assert not other.json()["choices"][0]["message"]["content"].startswith("Hello")


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        # the model writes a call without marks
        (
            '{"name": "say", "arguments": {}}',
            {"tools": [tool("say", {"type": "object"})]},
        ),
        ("<think>\nA thought of more than half the tokens.\n</think>\n\nHi", {"max_tokens": 64}),
    ],
)
def test_a_format_that_is_dropped_leaves_no_trace_in_the_answer(
    lenient: httpx.Client, said: str, fields: Json
) -> None:
    asked = chat(said, temperature=0, **fields)
    plain, dropped = (
        lenient.post(CHAT, json=body).json() for body in (asked, asked | schema_format(NO_SCHEMA))
    )

    (plain_choice,), (choice,) = plain["choices"], dropped["choices"]
    for message in (plain_choice["message"], choice["message"]):
        for call in message.get("tool_calls", ()):
            del call["id"]
    assert choice == plain_choice


@pytest.mark.parametrize("stream", [False, True])
def test_a_format_that_the_engine_refuses_is_dropped(
    unreasoning: httpx.Client, stream: bool
) -> None:
    answer = unreasoning.post(
        CHAT, json=chat("Hello", temperature=0, stream=stream, n=2, **IMPOSSIBLE)
    )

    assert answer.status_code == 200, answer.text
    assert "no text fits the grammar" in answer.headers[HEADER]
    if not stream:
        assert [choice["message"]["content"] for choice in answer.json()["choices"]] == [
            "Hello",
            "Hello",
        ]


def test_a_format_that_fails_behind_its_first_tokens_is_an_error(lenient: httpx.Client) -> None:
    answer = lenient.post(CHAT, json=chat("Hello", temperature=0, **TOO_WIDE))
    assert (answer.status_code, HEADER in answer.headers) == (400, False)
    assert "the grammar is too complex" in read_error(answer)["message"]


def test_an_engine_that_is_overloaded_still_puts_off() -> None:
    setup = running_server(engine_factory="create_grammar_timeout_engine", has_lenient_formats=True)
    with setup as server, server.client() as http:
        answer = http.post(CHAT, json=chat("Hello", response_format={"type": "json_object"}))
    assert answer.status_code == 429


def test_prompts_of_one_request_are_answered_alike(lenient: httpx.Client) -> None:
    prompts = [f"<|im_start|>user\n{said}<|im_end|>" for said in ("abc", "xyz")]
    body: Json = {
        "model": "parrot",
        "prompt": prompts,
        "max_tokens": 3,
        "temperature": 0,
        **IMPOSSIBLE,
    }
    answer = lenient.post(COMPLETIONS, json=body)
    assert answer.status_code == 200, answer.text
    assert [choice["text"] for choice in answer.json()["choices"]] == ["abc", "xyz"]
    assert "no text fits the grammar" in answer.headers[HEADER]
    streamed = lenient.post(COMPLETIONS, json=body | {"stream": True})
    assert streamed.headers[HEADER] == answer.headers[HEADER]
    assert read_events(streamed)[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (schema_format({"type": "integer", "minimum": 7, "maximum": 7}), "7"),
        ({"response_format": {"type": "json_object", "schema": {"const": 7}}}, "7"),
        ({"response_format": {"type": "const_string", "value": "Hi!"}}, "Hi!"),
        ({"response_format": {"type": "text"}}, "Hello"),
        ({"response_format": None}, "Hello"),
    ],
)
def test_a_format_that_can_be_made_counts(lenient: httpx.Client, fields: Json, text: str) -> None:
    answer = lenient.post(CHAT, json=chat("Hello", temperature=0, **fields))
    assert answer.json()["choices"][0]["message"]["content"] == text
    assert HEADER not in answer.headers


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": "json"},
        {"response_format": [1]},
        {"regex": "a", "guided_regex": "b"},
        {"structured_outputs": {"colour": 1}},
    ],
)
def test_a_format_of_another_type_and_a_second_one_are_refused(
    lenient: httpx.Client, fields: Json
) -> None:
    answer = lenient.post(CHAT, json=chat("Hello", **fields))
    assert answer.status_code == 400
    assert read_error(answer)["param"] in fields | {
        "structured_outputs.colour": None,
        "guided_regex": None,
    }


def test_the_option_is_on_in_ovms_profile_only() -> None:
    assert read_options({"profile": "ovms"}, {}).model.lenient_formats
    assert not read_options({"profile": "ovms", "lenient_formats": False}, {}).model.lenient_formats
    assert not read_options(
        {"profile": "ovms"}, {"OUZEL_LENIENT_FORMATS": "false"}
    ).model.lenient_formats
    assert not read_options({}, {}).model.lenient_formats
    assert read_options({"lenient_formats": True}, {}).model.lenient_formats


def test_a_failure_after_the_first_comment_of_a_stream_is_an_error() -> None:
    setup = running_server(
        limits=LimitsConfig(stream_keepalive_s=0.001),
        engine_factory="create_grammar_parrot",
        output_format=OutputFormat(),
        has_lenient_formats=True,
    )
    with setup as server, server.client() as http:
        answer = http.post(CHAT, json=chat("Hello", stream=True, **IMPOSSIBLE))
    is_told = HEADER in answer.headers  # True if the refusal came before the first comment
    assert is_told == ("[DONE]" in answer.text)
    assert is_told != ("no text fits the grammar" in answer.text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"text": {"format": {"type": "json_schema", "name": "any", "schema": LOOKS_AHEAD}}},
            "text.format.schema: ",
        ),
        (schema_format(LOOKS_AHEAD), "response_format.json_schema.schema: "),
        ({"response_format": {"type": 5}}, "response_format.type must be a string"),
    ],
)
def test_responses_are_made_without_a_format_likewise(
    unreasoning: httpx.Client, fields: Json, reason: str, stream: bool
) -> None:
    body: Json = {"model": "parrot", "input": "Hello", "temperature": 0, "stream": stream, **fields}
    answer = unreasoning.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    assert reason in answer.headers[HEADER]
    assert '"text":"Hello"' in answer.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_made_without_a_format_that_the_engine_refuses(
    unreasoning: httpx.Client, stream: bool
) -> None:
    body: Json = {
        "model": "parrot",
        "input": "Hello",
        "temperature": 0,
        "stream": stream,
        **IMPOSSIBLE,
    }
    answer = unreasoning.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    assert '"text":"Hello"' in answer.text
    assert "no text fits the grammar" in answer.headers[HEADER]


def test_a_response_names_the_format_that_it_is_made_without(unreasoning: httpx.Client) -> None:
    fields = {"temperature": 0, **schema_format(UNIQUE)}
    answer = unreasoning.post("/v1/responses", json={"model": "parrot", "input": "Hello", **fields})
    with connect_socket(str(unreasoning.base_url)) as socket:
        socket.create("Hello", **fields)
        created = json.loads(socket.connection.recv())  # the client's type has no warnings
        assert created["type"] == "response.created"

    assert answer.json()["warnings"] == created["response"]["warnings"] == [answer.headers[HEADER]]


def test_over_a_websocket_a_format_that_the_engine_refuses_is_an_error(
    unreasoning: httpx.Client,
) -> None:
    with connect_socket(str(unreasoning.base_url)) as socket:
        socket.create("Hello", temperature=0, **IMPOSSIBLE)
        refused = read_error_event(socket.events()[-1])
    assert refused["status"] == 400
    assert "no text fits the grammar" in str(refused["message"])
