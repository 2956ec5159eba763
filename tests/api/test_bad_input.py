"""An error about a bad body names the field, the limit and the value; the server still serves."""

import gzip
import socket

import httpx
import msgspec
import pytest
from openai.types import completion_create_params as completion_params
from openai.types.chat import completion_create_params as chat_params

from ouzel.api.lmi.standard import Parameters
from ouzel.api.openai.completions import CompletionRequest
from ouzel.api.operations import DOCUMENTED
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.config import LimitsConfig
from ouzel.wire.aliases import ALIASES
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.hints import HINTS
from ouzel.wire.unsupported import NEUTRAL_VALUES
from tests.api.requests import chat, read_error
from tests.api.server_setup import MODEL
from tests.api.serving import running_server

MESSAGE = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "look"}}
BODIES = list(
    dict.fromkeys(
        body for each in DOCUMENTED if each.words in ("openai", "lmi") for body in each.bodies
    )
)
GENERATING_BODIES = list(
    dict.fromkeys(
        body
        for each in DOCUMENTED
        if each.chunks and each.words == "openai"
        for body in each.bodies
    )
)


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"temperature": 3}, "temperature", "temperature must be <= 2.0, given 3"),
        ({"temperature": "warm"}, "temperature", 'temperature must be a number, given "warm"'),
        ({"temperature": True}, "temperature", "temperature must be a number, given true"),
        ({"top_p": 0}, "top_p", "top_p must be > 0.0, given 0"),
        ({"top_k": -2}, "top_k", "top_k must be >= -1, given -2"),
        ({"min_p": 1}, "min_p", "min_p must be < 1.0, given 1"),
        ({"n": 0}, "n", "n must be >= 1, given 0"),
        ({"n": 1.5}, "n", "n must be an integer, given 1.5"),
        ({"n": 1000}, "n", "n must be <= 128, given 1000"),
        ({"max_tokens": 0}, "max_tokens", "max_tokens must be >= 1, given 0"),
        ({"seed": 2**63}, "seed", "seed must be <= 9223372036854775807, given 9223372036854775808"),
        (
            {"seed": 2**64},
            "seed",
            "seed must be <= 9223372036854775807, given 18446744073709551616",
        ),
        (
            {"seed": 10**30},
            "seed",
            "seed must be <= 9223372036854775807, given 1000000000000000000000000000000",
        ),
        (
            {"seed": -(2**63) - 1},
            "seed",
            "seed must be >= -9223372036854775808, given -9223372036854775809",
        ),
        ({"typical_p": 0}, "typical_p", "typical_p must be > 0.0, given 0"),
        ({"typical_p": 1.5}, "typical_p", "typical_p must be <= 1.0, given 1.5"),
        ({"do_sample": 3}, "do_sample", "do_sample must be true or false, given 3"),
        (
            {"do_sample": False, "temperature": 0.5},
            "temperature",
            "must be 0 when do_sample is false, given 0.5",
        ),
        (
            {"do_sample": True, "temperature": 0},
            "temperature",
            "must be > 0 when do_sample is true, given 0",
        ),
        ({"bad_words": "x"}, "bad_words", 'bad_words must be a list, given "x"'),
        (
            {"bad_words": ["x", ""]},
            "bad_words[1]",
            'bad_words[1] must have a length >= 1, given ""',
        ),
        ({"bad_words": ["x"] * 129}, "bad_words", "bad_words must have a length <= 128"),
        (
            {"allowed_token_ids": []},
            "allowed_token_ids",
            "allowed_token_ids must have a length >= 1, given []",
        ),
        (
            {"allowed_token_ids": [5, 260]},
            "allowed_token_ids[1]",
            "allowed_token_ids[1] must be <= 259, given 260",
        ),
        ({"repeat_last_n": -2}, "repeat_last_n", "repeat_last_n must be >= -1, given -2"),
        (
            {"no_repeat_ngram_size": -1},
            "no_repeat_ngram_size",
            "no_repeat_ngram_size must be >= 0, given -1",
        ),
        (
            {"no_repeat_ngram_size": 65},
            "no_repeat_ngram_size",
            "no_repeat_ngram_size must be <= 64, given 65",
        ),
        ({"stop": [1]}, "stop[0]", "stop[0] must be a string, given 1"),
        ({"stop": ""}, "stop", 'stop must have a length >= 1, given ""'),
        ({"stop": ["a", ""]}, "stop[1]", 'stop[1] must have a length >= 1, given ""'),
        ({"stop": "a" * 257}, "stop", "stop must have a length <= 256"),
        ({"stop": ["b", "a" * 257]}, "stop[1]", "stop[1] must have a length <= 256"),
        ({"stop": ["a"] * 65}, "stop", "stop must have a length <= 64"),
        ({"stop": 5}, "stop", "stop must be a string or a list, given 5"),
        (
            {"logit_bias": {"5": 1, "6": 101}},
            "logit_bias.6",
            "logit_bias.6 must be <= 100.0, given 101",
        ),
        ({"logit_bias": {"5": "x"}}, "logit_bias.5", 'logit_bias.5 must be a number, given "x"'),
        ({"logit_bias": {"260": 1}}, "logit_bias", "token ids from 0 to 259, given '260'"),
        ({"logit_bias": {"-1": 1}}, "logit_bias", "given '-1'"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]", "stop_token_ids[0] must be >= 0, given -1"),
        (
            {"stop_token_ids": [5, 260]},
            "stop_token_ids[1]",
            "stop_token_ids[1] must be <= 259, given 260",
        ),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens", "min_tokens must be <= 8, given 9"),
        (
            {"logprobs": True, "top_logprobs": 21},
            "top_logprobs",
            "top_logprobs must be <= 20, given 21",
        ),
        ({"top_logprobs": 2}, "top_logprobs", "top_logprobs needs logprobs to be true, given 2"),
        ({"stream": "maybe"}, "stream", 'stream must be true or false, given "maybe"'),
        ({"stream_options": {"include_usage": True}}, "stream_options", "needs stream to be true"),
        ({"stream": True, "stream_options": {"x": 1}}, "stream_options.x", "not a field"),
        (
            {"stream": True, "stream_options": {"include_usage": "?"}},
            "stream_options.include_usage",
            "true or false",
        ),
        ({"messages": []}, "messages", "messages must be a non-empty list, given an empty list"),
        ({"messages": "Hi"}, "messages", 'messages must be a non-empty list, given "Hi"'),
        ({"messages": [5]}, "messages[0]", "messages[0] must be an object, given 5"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role", "messages[0].role must be"),
        (
            {"messages": [MESSAGE, {"role": "user", "content": 5}]},
            "messages[1].content",
            "messages[1].content must be",
        ),
        ({"model": 5}, "model", "model must be a string, given 5"),
        ({"tools": [{"type": "function"}]}, "tools[0].function", "tools[0].function is required"),
        (
            {"tools": [{"type": "mcp"}]},
            "tools[0].type",
            'tools[0].type must be one of "function", "custom", given "mcp"',
        ),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "tools[0].name must"),
        ({"tools": [TOOL, TOOL]}, "tools[1].function.name", "must be unique, given 'look' again"),
        ({"tools": [TOOL]}, "tools", "this model's chat template has no tools"),
        ({"tool_choice": "required"}, "tool_choice", "tool_choice needs tools"),
        (
            {"tool_choice": "always"},
            "tool_choice",
            'tool_choice must be one of "auto", "none", "required"',
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "leap"}}},
            "tool_choice",
            "tool_choice must name one of the tools, given 'leap'",
        ),
        ({"functions": [{}]}, "functions[0].name", "functions[0].name is required"),
        (
            {"functions": [{"name": "f"}], "tools": []},
            "functions",
            "must not be given beside tools",
        ),
        ({"function_call": {"name": "f"}}, "function_call", "function_call needs functions"),
        ({"response_format": {}}, "response_format.type", "response_format.type is required"),
        (
            {"response_format": {"type": "text", "schema": {}}},
            "response_format.schema",
            "not a field of this object",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {}, "style": 1},
                }
            },
            "response_format.json_schema.style",
            "response_format.json_schema.style is not a field of this object, given 1",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {}, "strict": "yes"},
                }
            },
            "response_format.json_schema.strict",
            'must be true or false, given "yes"',
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "auto"}},
            "tool_choice.type",
            'tool_choice.type must be one of "function", "custom", "allowed_tools", given "auto"',
        ),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "parameters": {"type": "string"}},
                    }
                ]
            },
            "tools[0].function.parameters.type",
            'must be "object", given "string"',
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "strict": True},
                }
            },
            "response_format.json_schema.schema",
            "response_format.json_schema.schema is required",
        ),
        ({"response_format": {"type": "yaml"}}, "response_format", "given 'yaml'"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "text"}},
                }
            },
            "response_format.json_schema.schema",
            "text",
        ),
        (
            {"guided_regex": "a", "guided_choice": ["a"]},
            "guided_choice",
            "guided_choice must not be given beside guided_regex",
        ),
        ({"structured_outputs": {}}, "structured_outputs", "must have exactly one of json, regex"),
        ({"guided_json": "{"}, "guided_json", "guided_json is not valid JSON"),
        ({"guided_regex": "(", "num_beams": 1}, "guided_regex", "guided_regex"),
        ({"audio": {}}, "audio", "audio is not supported"),
        ({"modalities": ["text", "audio"]}, "modalities", "modalities is not supported"),
        ({"best_of": 2, "n": 3}, "best_of", "best_of must be >= 3, the number of choices, given 2"),
        ({"best_of": 129}, "best_of", "best_of must be <= 128, given 129"),
        (
            {"num_return_sequences": 129},
            "num_return_sequences",
            "num_return_sequences must be <= 128, given 129",
        ),
        (
            {"n": 2, "num_return_sequences": 3},
            "num_return_sequences",
            "must be 2, the same as n, given 3",
        ),
        (
            {"length_penalty": 0.5},
            "length_penalty",
            "length_penalty needs beam search (use_beam_search, or num_beams",
        ),
        ({"early_stopping": "never"}, "early_stopping", "early_stopping needs beam search"),
        ({"diversity_penalty": 1}, "diversity_penalty", "diversity_penalty needs beam search"),
        (
            {"num_beams": 1, "num_beam_groups": 2},
            "num_beam_groups",
            "num_beam_groups needs beam search",
        ),
        (
            {"num_beams": 2, "use_beam_search": False},
            "num_beams",
            "num_beams must be 1 without use_beam_search, given 2",
        ),
        (
            {"num_beams": 2, "temperature": 0.7},
            "temperature",
            "temperature must be 0 in a beam search, given 0.7",
        ),
        ({"num_beams": 2, "top_p": 0.9}, "top_p", "top_p must be 1 in a beam search, given 0.9"),
        ({"num_beams": 2, "top_k": 5}, "top_k", "top_k must be -1 in a beam search, given 5"),
        ({"num_beams": 2, "min_p": 0.1}, "min_p", "min_p must be 0 in a beam search, given 0.1"),
        (
            {"num_beams": 2, "typical_p": 0.5},
            "typical_p",
            "typical_p must be 1 in a beam search, given 0.5",
        ),
        (
            {"num_beams": 2, "do_sample": True},
            "do_sample",
            "do_sample must be false in a beam search, given true",
        ),
        (
            {"num_beams": 2, "best_of": 3},
            "best_of",
            "best_of must be 2, the same as num_beams, given 3",
        ),
        (
            {"num_beams": 2, "n": 3},
            "num_beams",
            "num_beams must be >= 3, the number of choices, given 2",
        ),
        (
            {"use_beam_search": True, "best_of": 2, "n": 3},
            "best_of",
            "best_of must be >= 3, the number of choices",
        ),
        ({"num_beams": 129}, "num_beams", "num_beams must be <= 128 in a beam search, given 129"),
        (
            {"use_beam_search": True, "best_of": 129},
            "best_of",
            "best_of must be <= 128 in a beam search, given 129",
        ),
        (
            {"num_beams": 4, "num_beam_groups": 3},
            "num_beam_groups",
            "must divide the number of beams, 4, given 3",
        ),
        (
            {"num_beams": 4, "num_beam_groups": 2},
            "diversity_penalty",
            "must be > 0 with num_beam_groups, given 0",
        ),
        (
            {"num_beams": 4, "diversity_penalty": 1},
            "diversity_penalty",
            "needs num_beam_groups > 1, given 1",
        ),
        (
            {"num_beams": 4, "length_penalty": 11},
            "length_penalty",
            "length_penalty must be <= 10.0, given 11",
        ),
        ({"num_beams": 2, "early_stopping": "soon"}, "early_stopping", "early_stopping must be"),
        ({"detokenize": False}, "detokenize", "detokenize is not supported"),
        ({"enable_thinking": True}, "enable_thinking", "enable_thinking has no effect"),
        (
            {"enable_thinking": "perhaps"},
            "enable_thinking",
            'true or false or an object, given "perhaps"',
        ),
        (
            {"thinking": {"type": "some"}},
            "thinking.type",
            'one of "disabled", "enabled", given "some"',
        ),
        ({"thinking": {"type": "enabled"}}, "thinking", "thinking has no effect"),
        ({"reasoning_effort": "low"}, "reasoning_effort", "reasoning_effort has no effect"),
        ({"chat_template": "x"}, "chat_template", "--trust-request-chat-template"),
        ({"chat_template_kwargs": {"mood": 1}}, "chat_template_kwargs.mood", "does not read mood"),
        (
            {"chat_template_kwargs": {"messages": 1}},
            "chat_template_kwargs.messages",
            "itself provides messages",
        ),
        (
            {"chat_template_kwargs": {"bos_token": ""}},
            "chat_template_kwargs.bos_token",
            "itself provides bos_token",
        ),
        ({"documents": [{"text": "x"}]}, "documents", "documents has no effect"),
        ({"documents": ["x"]}, "documents[0]", 'documents[0] must be an object, given "x"'),
        (
            {"continue_final_message": True, "add_generation_prompt": True},
            "continue_final_message",
            "continue_final_message must not be true when add_generation_prompt is true",
        ),
        (
            {"reasoning_effort": "some"},
            "reasoning_effort",
            '"minimal", "none", "xhigh", given "some"',
        ),
        ({"temperature": "nan"}, "temperature", 'temperature must be a number, given "nan"'),
        ({"temperature": "1e999"}, "temperature", 'temperature must be a number, given "1e999"'),
        (
            {"temperature": 10**400},
            "temperature",
            "temperature must be a number of at most 64 bits, given 1000",
        ),
        ({"n": "two"}, "n", 'n must be an integer, given "two"'),
        ({"n": "1.5"}, "n", "n must be an integer, given 1.5"),
        ({"n": True}, "n", "n must be an integer, given true"),
        ({"stop": ["a", ["b"] * 99]}, "stop[1]", "(397 characters)"),
        ({"stream": "true"}, "stream", 'stream must be true or false, given "true"'),
        ({"stream": 1}, "stream", "stream must be true or false, given 1"),
        ({"logit_bias": {"5": None}}, "logit_bias.5", "logit_bias.5 must be a number, given null"),
        ({"prompt_logprobs": -2}, "prompt_logprobs", "prompt_logprobs must be >= -1, given -2"),
        ({"prompt_logprobs": 21}, "prompt_logprobs", "prompt_logprobs must be <= 20, given 21"),
        (
            {"max_completion_tokens": 0},
            "max_completion_tokens",
            "max_completion_tokens must be >= 1, given 0",
        ),
        ({"max_tokens": -2}, "max_tokens", "max_tokens must be >= -1, given -2"),
        (
            {"metadata": {str(i): "x" for i in range(17)}},
            "metadata",
            "metadata must have a length <= 16",
        ),
        ({"metadata": {"a": 1}}, "metadata.a", "metadata.a must be a string, given 1"),
        (
            {"metadata": {" - at `$.stop[7]": 1}},
            "metadata. - at `$.stop[7]",
            "stop[7] must be a string, given 1",
        ),
        (
            {"metadata": {"a[7].b": 1}, "stop": "x"},
            "metadata.a[7].b",
            "metadata.a[7].b must be a string, given 1",
        ),
        (
            {"metadata": {"k" * 5000: 1}},
            f"metadata.{'k' * 40}",
            f"metadata.{'k' * 40} must be a string",
        ),
        (
            {"stream": True, "stream_options": {"\n - at `$.messages[7]": 1}},
            "stream_options.\n - at `$.messages[7]",
            "is not a field of this object",
        ),
        (
            {"user": "x" * 5, "chat_template_kwargs": []},
            "chat_template_kwargs",
            "must be an object, given []",
        ),
    ],
)
def test_a_wrong_field_is_named(
    http: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    response = http.post("/v1/chat/completions", json=chat("Hi", **fields))
    error = read_error(response)
    assert response.status_code == 400
    assert message in error["message"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not valid JSON"),
        (b'{"model": "parrot",}', "the body is not valid JSON"),
        (b'{"model": "\xff"}', "the body is not valid JSON"),
        (
            b'{"model": "\\ud800x"}',
            "model must be Unicode text: half of a surrogate pair is no character",
        ),
        (
            b'{"messages": [{"role": "user", "content": "a\\udc00"}]}',
            "messages[0].content must be Unicode text",
        ),
        (b'{"\\ud800": 1}', "the body is not valid JSON"),
        (b'{"metadata": {"\\ud800": "\\udfff"}}', "metadata.? must be Unicode text"),
        (b'{"\\ud800": 1e999}', "? must be a finite number, at most 1e308"),
        (b'{"temperature": NaN}', "temperature must be a finite number, at most 1e308"),
        (b'{"temperature": -Infinity}', "temperature must be a finite number"),
        (b'{"model": "\xed\xa0\x80"}', "model must be Unicode text"),
        ('{"model": "parrot"}'.encode("utf-16"), "the body is not valid JSON"),
        (b'{"seed": 1e999}', "seed must be a finite number, at most 1e308"),
        (b'{"stop": ["a", {"b": 1' + b"0" * 5000 + b"}]}", "stop[1].b must be a finite number"),
        (
            b'{"model": "parrot", "stop": ' + b"[" * 400 + b"]" * 400 + b', "messages": []}',
            "stop[0] must be a string",
        ),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b'{"a":' * 900 + b"1e999" + b"}" * 900, "a.a.a must be a finite number, at most 1e308"),
        (b"[1, 2]", "the body must be a JSON object, given [1,2]"),
        (b"null", "the body must be a JSON object, given null"),
        (b"", "the body must be a JSON object, given nothing"),
        (b" \n", "the body must be a JSON object, given nothing"),
        (b'{"model": "parrot"}', "messages is required"),
    ],
)
def test_a_body_that_is_no_request_is_refused(
    http: httpx.Client, body: bytes, message: str
) -> None:
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert message in read_error(response)["message"]


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        (b'"n": 2.0', ["Hi", "Hi"]),
        (b'"n": "2"', ["Hi", "Hi"]),
        (b'"max_tokens": "1.0"', ["H"]),
        (b'"temperature": "0.5", "logit_bias": {"5": "1e1"}, "stop_token_ids": ["105"]', ["H"]),
        (
            b'"n": null, "stop": null, "stream": null, "tools": null, "logit_bias": null, '
            b'"stream_options": null',
            ["Hi"],
        ),
        (b'"n": 3, "n": 2', ["Hi", "Hi"]),
        (b'"stop": "i", "user": "1"', ["H"]),
        (b'"stop": "\\u0000", "cache_salt": "\\u0000"', ["Hi"]),
        (b'"something": {"unknown": [1]}', ["Hi"]),
    ],
)
def test_numbers_are_read_leniently_and_null_is_not_given(
    http: httpx.Client, fields: bytes, answers: list[str]
) -> None:
    body = (
        b'\xef\xbb\xbf{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}], '
        + fields
        + b"}"
    )
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 200, response.text
    assert [choice["message"]["content"] for choice in response.json()["choices"]] == answers


@pytest.mark.parametrize("body", GENERATING_BODIES)
@pytest.mark.parametrize("other", [*BODIES, Parameters])
def test_a_field_of_another_endpoint_is_honoured_or_refused(
    body: type[msgspec.Struct], other: type[msgspec.Struct]
) -> None:
    known = {*body.__struct_encode_fields__, *ALIASES, *HINTS, *NEUTRAL_VALUES}
    assert set(other.__struct_encode_fields__) <= known


def test_a_field_of_another_endpoint_is_answered_with_what_to_use_here(http: httpx.Client) -> None:
    response = http.post(
        "/v1/completions", json={"model": "parrot", "prompt": "Hi", "messages": [MESSAGE]}
    )
    assert response.status_code == 400
    assert read_error(response)["param"] == "messages"
    assert "(use prompt, or /chat/completions)" in read_error(response)["message"]


@pytest.mark.parametrize(
    ("body", "params"),
    [
        (ChatCompletionRequest, chat_params.CompletionCreateParamsBase),
        (CompletionRequest, completion_params.CompletionCreateParamsBase),
    ],
)
def test_every_parameter_of_the_openai_client_is_honoured_or_refused(
    body: type[msgspec.Struct], params: type
) -> None:
    assert params.__annotations__.keys() <= {
        *body.__struct_encode_fields__,
        *HINTS,
        *NEUTRAL_VALUES,
    }


def test_null_is_not_given_in_any_field(http: httpx.Client) -> None:
    known = {*ChatCompletionRequest.__struct_encode_fields__, *ALIASES, *HINTS, *NEUTRAL_VALUES}
    optional = known - {"messages"}
    response = http.post("/v1/chat/completions", json=chat("Hi") | dict.fromkeys(optional))
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "Hi"


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"]
)
def test_a_compressed_body_is_refused_in_words_that_name_the_encoding(
    http: httpx.Client, path: str
) -> None:
    body = gzip.compress(msgspec.json.encode(chat("Hi")))
    response = http.post(path, content=body, headers={"content-encoding": "gzip"})
    assert response.status_code == 415
    assert read_error(response)["code"] == "unsupported_encoding"
    assert read_error(response)["message"] == "Content-Encoding must be identity, given gzip"


def test_the_encoding_of_a_plain_body_may_be_named(http: httpx.Client) -> None:
    response = http.post(
        "/v1/chat/completions", json=chat("Hi"), headers={"content-encoding": "Identity"}
    )
    assert response.status_code == 200


def test_the_content_type_does_not_matter(http: httpx.Client) -> None:
    body = b'{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]}'
    response = http.post(
        "/v1/chat/completions", content=body, headers={"content-type": "text/plain"}
    )
    assert response.json()["choices"][0]["message"]["content"] == "Hi"


@pytest.mark.parametrize(
    "path", ["chat/completions", "completions", "tokenize", "responses", "responses/input_tokens"]
)
@pytest.mark.parametrize("fields", [{}, {"model": None}, {"model": ""}])
def test_a_server_with_one_model_needs_no_name(
    http: httpx.Client, path: str, fields: dict[str, object]
) -> None:
    prompts: dict[str, dict[str, object]] = {
        "chat/completions": {"messages": [MESSAGE]},
        "completions": {"prompt": "Hi"},
    }
    body = prompts.get(path, {"prompt": "Hi"} if path == "tokenize" else {"input": "Hi"})
    response = http.post(f"/v1/{path}", json={**body, **fields})
    assert response.status_code == 200, response.text
    assert response.json().get("model", MODEL) == MODEL


def test_an_unknown_model_is_a_404(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json={"model": "gpt-9", "messages": [MESSAGE]})
    assert response.status_code == 404
    assert read_error(response)["code"] == "model_not_found"
    assert read_error(response)["param"] == "model"


def test_a_prompt_longer_than_the_context_is_refused(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json=chat("x" * 5000))
    assert response.status_code == 400
    assert read_error(response)["code"] == "context_length_exceeded"
    assert "4096" in read_error(response)["message"]


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        (
            b"[" + b"[]," * 300_000 + b"1]",
            "262144 objects, lists, strings and names of fields, given 300007",
        ),
        (
            b"[" + b'",",' * 300_000 + b"1]",
            "262144 objects, lists, strings and names of fields, given 300007",
        ),
        (
            b"{" + b'"\\\\":1,' * 300_000 + b'"":1}',
            "262144 objects, lists, strings and names of fields, given 300008",
        ),
        (b"[" + b"7," * 2_200_000 + b"1]", "2097152 values, given 2200005"),
    ],
    ids=["lists", "strings", "names", "numbers"],
)
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(
    http: httpx.Client, values: bytes, limit: str
) -> None:
    response = http.post(
        "/v1/chat/completions", content=b'{"model":"parrot","messages":[],"x":' + values + b"}"
    )
    assert response.status_code == 400
    assert read_error(response)["message"] == f"the body must have <= {limit}"


@pytest.mark.parametrize(
    "text", ["a, [b], {c}: " * 300_000, '"' * 2_000_000, "\\" * 2**20 + '"' * 300_000]
)
def test_a_long_text_is_one_value(http: httpx.Client, text: str) -> None:
    response = http.post("/v1/chat/completions", json=chat(text))
    assert read_error(response)["code"] == "context_length_exceeded"


def test_a_million_token_ids_are_not_too_many_values(http: httpx.Client) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", "prompt": [7] * 2**20})
    assert read_error(response)["code"] == "context_length_exceeded"


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_body_of_100_megabytes_is_refused_before_it_is_read(
    http: httpx.Client, is_announced: bool
) -> None:
    megabyte = b"x" * 2**20
    body = megabyte * 100 if is_announced else (megabyte for _ in range(100))
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 413
    assert read_error(response)["message"] == "the request body must be <= 16777216 bytes long"
    assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_the_models_makers_say_how_long_and_where_to_stop_unless_the_request_does() -> None:
    defaults = SamplingDefaults(max_new_tokens=5, stop_strings=["d"])
    with running_server(sampling_defaults=defaults) as server, server.client() as http:

        def said(text: str, **fields: object) -> str:
            answer = http.post("/v1/chat/completions", json=chat(text, **fields)).json()
            return str(answer["choices"][0]["message"]["content"])

        assert said("abcdefgh") == "abc"
        assert said("abcdefgh", stop=[]) == "abcde"
        assert said("abcdefgh", stop="b", max_tokens=8) == "a"
        assert said("abcabcabc", max_tokens=8) == "abcabcab"


def test_a_servers_own_limit_of_tokens_counts_for_every_request() -> None:
    with running_server(max_tokens_limit=4) as server, server.client() as http:
        unsaid = http.post("/v1/chat/completions", json=chat("abcdefgh")).json()
        assert (
            unsaid["choices"][0]["message"]["content"],
            unsaid["choices"][0]["finish_reason"],
        ) == ("abcd", "length")
        assert (
            http.post("/v1/chat/completions", json=chat("abcdefgh", max_tokens=4)).status_code
            == 200
        )
        refused = http.post("/v1/chat/completions", json=chat("abcdefgh", max_completion_tokens=5))
        assert read_error(refused)["param"] == "max_completion_tokens"
        assert (
            "must be <= 4, this server's max_tokens_limit, given 5"
            in read_error(refused)["message"]
        )


@pytest.mark.parametrize(
    "path",
    [
        operation.path.replace("{model_name}", "parrot")
        for operation in DOCUMENTED
        if operation.bodies
        and "{model_version}" not in operation.path  # no model has versions: a 404 at once
    ],
)
def test_every_endpoint_with_a_body_limits_its_length(path: str) -> None:
    limits = LimitsConfig(max_body_bytes=1024)
    with running_server(limits=limits) as server, server.client() as http:
        for body in (b"x" * 1025, (b"x" * 205 for _ in range(5)), (b"x" for _ in range(2000))):
            response = http.post(path, content=body)
            assert response.status_code == 413
            assert '"the request body must be <= 1024 bytes long"' in response.text
        response = http.post(
            path, content=(b" " for _ in range(1024)), headers={"content-type": "application/json"}
        )
        assert response.status_code in (400, 422, 424), (
            "as long as allowed; 422 is TEI's, 424 LMI's"
        )


def test_without_a_chat_template_chat_is_refused_and_completions_work() -> None:
    with running_server(has_chat_template=False) as server, server.client() as http:
        response = http.post("/v1/chat/completions", json=chat("Hi"))
        assert response.status_code == 400
        assert "no chat template" in read_error(response)["message"]
        body = {"model": "parrot", "prompt": "abc", "max_tokens": 4}
        assert http.post("/v1/completions", json=body).json()["choices"][0]["text"] == "abca"
        assert http.get("/v1/models/parrot").json()["capabilities"] == ["completion"]


def test_a_body_that_does_not_come_gives_its_place_back() -> None:
    limits = LimitsConfig(body_timeout_s=0.05)
    with running_server(limits=limits) as server, server.client() as http:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                b"content-length: 100\r\n\r\n{"
            )
            answer = ""
            while not answer.endswith("}"):
                answer += connection.recv(65536).decode()

        assert answer.startswith("HTTP/1.1 408")
        assert "the request body must arrive within 0.05 s" in answer
        assert server.engine.num_unfinished == 0
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200
