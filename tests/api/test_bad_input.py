"""An error about a bad body names the field, the limit and the value; the server still serves."""

import httpx
import pytest

from tests.api.requests import chat, read_error

MESSAGE = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "look"}}


def check_wrong_field(
    http: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    response = http.post("/v1/chat/completions", json=chat("Hi", **fields))
    error = read_error(response)
    assert response.status_code == 400
    assert message in error["message"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"


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
        ({"functions": [{}]}, "functions[0].name", "functions[0].name is required"),
        ({"function_call": {"name": "f"}}, "function_call", "function_call needs functions"),
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
            {"metadata": {"k" * 65: "x"}},
            "metadata",
            "metadata: each name must have a length <= 64",
        ),
        ({"metadata": {"a": "x" * 513}}, "metadata.a", "metadata.a must have a length <= 512"),
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
            {"metadata": {"k" * 64: 1}},
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
    check_wrong_field(http, fields, param, message)
