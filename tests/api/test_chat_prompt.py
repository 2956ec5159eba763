"""Some fields of chat completions change the prompt."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import msgspec
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from tests.api.byte_tokens import END
from tests.api.requests import Json, chat, join_content, read_error, read_events
from tests.api.serving import running_server
from tests.tries import holds_in_a_try

UNFINISHED: Json = {
    "model": "parrot",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well, "}],
    "max_tokens": 3,
}


@pytest.mark.parametrize("fields", [{}, {"add_generation_prompt": False}])
def test_the_final_message_goes_on_and_only_the_new_text_is_the_answer(
    http: httpx.Client, fields: dict[str, object]
) -> None:
    body = {**UNFINISHED, "continue_final_message": True, **fields}
    answer = http.post("/v1/chat/completions", json=body).json()
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nWell, "
    num_special_tokens = 3
    num_bytes = len(prompt) - len("<|im_start|>" * 2 + "<|im_end|>")
    assert answer["usage"]["prompt_tokens"] == num_bytes + num_special_tokens
    content = answer["choices"][0]["message"]["content"]
    assert content and not content.startswith("Well")
    streamed = http.post("/v1/chat/completions", json={**body, "stream": True})
    assert join_content(read_events(streamed)) == content


def test_without_a_generation_prompt_the_prompt_is_shorter(http: httpx.Client) -> None:
    usages = [
        http.post("/v1/chat/completions", json=chat("Hi", add_generation_prompt=given)).json()[
            "usage"
        ]
        for given in (None, True, False)
    ]
    counts = [usage["prompt_tokens"] for usage in usages]
    assert counts[0] == counts[1] == counts[2] + 1 + len("assistant\n")


def test_a_trusted_template_of_the_requests_own_is_used() -> None:
    own = "{% for m in messages %}<|im_start|>user\n{{ shout ~ m.content }}<|im_end|>{% endfor %}"
    with running_server(trusts_request_template=True) as server, server.client() as http:
        body = chat("Hi", chat_template=own, chat_template_kwargs={"shout": "HO "})
        assert (
            http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
            == "HO Hi"
        )
        body["stream"] = True
        assert join_content(read_events(http.post("/v1/chat/completions", json=body))) == "HO Hi"
        for text, message in [
            ("{% if %}", "chat_template is broken: line 1"),
            ("{% break %}", "chat_template is broken: line 1: 'break' outside loop"),
            ("x" * 131_073, "chat_template must have a length <= 131072"),
            (
                "{{ raise_exception('not you') }}",
                "the chat template refuses these messages: not you",
            ),
            ("{{ messages.__class__.__mro__ }}", "unsafe"),
            ("{{ 'x' * 10**10 }}", "longer than"),
        ]:
            response = http.post("/v1/chat/completions", json=chat("Hi", chat_template=text))
            assert response.status_code == 400
            assert message in read_error(response)["message"]
            assert read_error(response)["param"] == "chat_template"
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_a_template_of_the_requests_own_holds_up_nobody_however_its_field_is_spelled() -> None:
    takes_long = "{% for a in range(100) %}{% for b in range(1000) %}{% endfor %}{% endfor %}"
    own = (
        f"{{% if messages[0].content == 'Hi' %}}{takes_long}{{% endif %}}"
        "{{ messages[0].content }}"
    )
    chat_body = msgspec.json.encode(chat("Hi", chat_template=own))
    response_body = msgspec.json.encode({"model": "parrot", "input": "Hi", "chat_template": own})
    with running_server(trusts_request_template=True) as server, ThreadPoolExecutor(1) as clients:
        for path, body in (
            ("/v1/chat/completions", chat_body),
            ("/v1/responses", response_body),
            ("/v1/responses/input_tokens", response_body),
            ("/tokenize", chat_body),
        ):
            disguised = body.replace(b'"chat_template"', b'"chat\\u005ftemplate"')
            with server.client() as slow, server.client() as http:

                def health_is_quick(
                    slow_post: Callable[[], httpx.Response], http: httpx.Client = http
                ) -> bool:
                    begun = time.monotonic()
                    answer = clients.submit(slow_post)
                    longest_s = 0.0
                    while not answer.done():
                        asked = time.monotonic()
                        assert http.get("/health").status_code == 200
                        longest_s = max(longest_s, time.monotonic() - asked)
                    taken_s = time.monotonic() - begun
                    assert answer.result().status_code == 200, answer.result().text
                    return longest_s < taken_s / 2

                assert holds_in_a_try(
                    partial(health_is_quick, partial(slow.post, path, content=disguised))
                ), path


@pytest.mark.parametrize(
    "field", ["chat_template_kwargs", "reasoning_effort", "add_generation_prompt", "documents"]
)
def test_completions_have_no_chat_to_shape(http: httpx.Client, field: str) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", "prompt": "x", field: "low"})
    assert response.status_code == 400
    assert read_error(response)["param"] == field


@pytest.mark.parametrize("given", [True, False, None])
def test_special_tokens_are_shown_without_spaces_between_them(
    http: httpx.Client, given: bool | None
) -> None:
    """A byte-level tokenizer adds no such spaces, with any value of the field."""
    body = {"model": "parrot", "prompt": [97, END, END], "echo": True, "max_tokens": 1}
    fields = {"skip_special_tokens": False, "spaces_between_special_tokens": given}
    answer = http.post("/v1/completions", json={**body, **fields}).json()
    assert answer["choices"][0]["text"].startswith("a<|im_end|><|im_end|>")


def test_no_spaces_where_the_tokenizer_writes_them_is_refused() -> None:
    library_tokenizer = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    library_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    library_tokenizer.decoder = decoders.WordPiece()
    library_tokenizer.add_special_tokens(["<|x|>", "<|y|>"])
    tokenizer = HuggingFaceTokenizer(library_tokenizer, {})
    with running_server(tokenizer=tokenizer) as server, server.client() as http:
        body: Json = {
            "model": "parrot",
            "prompt": [0, 1],
            "spaces_between_special_tokens": False,
            "max_tokens": 1,
        }
        assert http.post("/v1/completions", json=body).status_code == 200
        response = http.post("/v1/completions", json={**body, "skip_special_tokens": False})
        assert response.status_code == 400
        assert read_error(response)["param"] == "spaces_between_special_tokens"
        assert "must be true, given false" in read_error(response)["message"]
