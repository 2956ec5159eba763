"""Reads the fields that users of `openai` read, with or without a value.

Usage: `python openai_client.py ROOT`.

The package's objects raise AttributeError for a field that the server leaves out.
"""

import sys
from typing import Any

import openai

client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none", max_retries=0)
HELLO: Any = [{"role": "user", "content": "Hello!"}]


def fields_without_a_value_are_null() -> None:
    chat: Any = client.chat.completions.create(model="ouzel", messages=HELLO)
    assert chat.choices[0].message.reasoning_content is None
    assert chat.prompt_logprobs is None
    completion: Any = client.completions.create(model="ouzel", prompt="Hello", max_tokens=3)
    assert completion.choices[0].prompt_logprobs is None
    [model] = client.models.list().data
    served: Any = model
    assert (served.root, served.parent) == (None, None)


def an_overflow_is_known_by_its_code() -> None:
    long: Any = [{"role": "user", "content": "word " * 70_000}]
    try:
        client.chat.completions.create(model="ouzel", messages=long)
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded"
        assert "maximum context length is 65536 tokens" in str(error)
    else:
        raise AssertionError("no error")


if __name__ == "__main__":
    fields_without_a_value_are_null()
    an_overflow_is_known_by_its_code()
