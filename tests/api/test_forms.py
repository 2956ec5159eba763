"""A request can demand a form of the output with fields of vLLM, llama.cpp, SGLang or TGI."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import chat, read_error
from tests.api.serving import running_server

INTEGER = {"type": "integer", "minimum": 7, "maximum": 7}
DIGITS = 'root ::= digit "-" digit\ndigit ::= [7]'


@pytest.fixture(scope="module")
def guided() -> Iterator[httpx.Client]:
    with running_server(engine_factory="create_grammar_parrot") as server, server.client() as http:
        yield http


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"regex": "(xyz){2}"}, "xyzxyz"),
        ({"ebnf": DIGITS}, "7-7"),
        ({"grammar": DIGITS}, "7-7"),
        ({"grammar": {"type": "regex", "value": "xyz"}}, "xyz"),
        ({"grammar": {"type": "json", "value": INTEGER}}, "7"),
        ({"json_schema": INTEGER}, "7"),
        ({"response_format": {"type": "json_object", "schema": INTEGER}}, "7"),
        ({"response_format": {"type": "json_schema", "schema": INTEGER}}, "7"),
        ({"response_format": {"type": "json_object", "schema": INTEGER, "json_schema": None}}, "7"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": INTEGER},
                    "schema": None,
                }
            },
            "7",
        ),
        ({"response_format": {"type": "text"}, "regex": "xyz", "grammar": None}, "xyz"),
    ],
)
def test_each_has_the_form(guided: httpx.Client, fields: dict[str, object], text: str) -> None:
    answer = guided.post("/v1/chat/completions", json=chat("abc", temperature=0, **fields))
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == text


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        (
            {"response_format": {"type": 5}},
            "response_format.type",
            "response_format.type must be a string, given 5",
        ),
        ({"grammar": "root ::= x"}, "grammar", "the rule 'x' is missing"),
        ({"regex": "("}, "regex", "regex"),
        ({"regex": "a", "ebnf": DIGITS}, "ebnf", "ebnf must not be given beside regex"),
        (
            {"json_schema": {"type": "integer"}, "guided_regex": "a"},
            "json_schema",
            "must not be given beside guided_regex",
        ),
        (
            {"grammar": {"type": "xml", "value": "x"}},
            "grammar.type",
            'must be "json" or "regex", given "xml"',
        ),
        ({"grammar": {"type": "json"}}, "grammar.value", "grammar.value is required"),
        (
            {"response_format": {"type": "json_object", "schema": {"type": "no"}}},
            "response_format.schema",
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": {}, "colour": 1}},
            "response_format.colour",
            "response_format.colour is not a field of this object, given 1",
        ),
    ],
)
def test_a_wrong_form_is_named(
    http: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    answer = http.post("/v1/chat/completions", json=chat("abc", **fields))
    assert answer.status_code == 400
    assert read_error(answer)["param"] == param
    assert message in read_error(answer)["message"]


@pytest.mark.parametrize("output_format", [OutputFormat(), OutputFormat(reasoning=THINKING_ONLY)])
def test_a_form_that_no_text_fits_is_refused_before_and_behind_the_reasoning(
    output_format: OutputFormat,
) -> None:
    setup = running_server(engine_factory="create_grammar_parrot", output_format=output_format)
    with setup as server, server.client() as http:
        answer = http.post(
            "/v1/chat/completions", json=chat("Hello", guided_grammar="start: T\nT: /a/ & /b/")
        )
    assert answer.status_code == 400
    assert read_error(answer)["message"] == "guided_grammar: no text fits the grammar"
