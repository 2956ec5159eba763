"""Texts become tokens and tokens texts, in the forms of OpenVINO Model Server and of vLLM."""

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any  # an answer's JSON

import httpx
import pytest
from tokenizers.processors import TemplateProcessing

from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from tests.api.byte_tokens import END, FAIL, START, byte_library_tokenizer
from tests.api.requests import Json, chat, read_error
from tests.api.serving import running_server
from tests.tries import holds_in_a_try

CHAT_IDS = [START, *b"user\nHi", END, *b"\n", START, *b"assistant\n"]
CHAT_TEXT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
MESSAGES = [{"role": "user", "content": "Hi"}]


def tokenize(http: httpx.Client, **fields: object) -> Json:
    response = http.post("/tokenize", json=fields)
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


@pytest.mark.parametrize("prefix", ["", "/v1", "/v3", "/v3/v1"])
def test_there_and_back_on_every_path(http: httpx.Client, prefix: str) -> None:
    text = "Hello, wörld 🦉<|im_end|>"
    there = http.post(
        f"{prefix}/tokenize", content=f'{{"model": "parrot", "prompt": "{text}"}}'.encode()
    )
    tokens = there.json()["tokens"]
    assert tokens == [*"Hello, wörld 🦉".encode(), END]
    back = http.post(f"{prefix}/detokenize", json={"model": "parrot", "tokens": tokens})
    assert back.json() == {"prompt": text}


def test_a_text_gives_token_ids_alone(http: httpx.Client) -> None:
    assert tokenize(http, model="parrot", text="Hi") == {"tokens": [72, 105]}
    assert tokenize(http, text=["Hi", "", "a"]) == {"tokens": [[72, 105], [], [97]]}
    assert tokenize(http, text="") == {"tokens": []}


def test_a_prompt_gives_token_ids_and_their_count(http: httpx.Client) -> None:
    expected = {"count": 2, "max_model_len": 4096, "tokens": [72, 105], "token_strs": None}
    assert tokenize(http, prompt="Hi") == expected
    assert tokenize(http, prompt="Hi", return_token_strs=True) == {
        **expected,
        "token_strs": ["H", "i"],
    }


def test_a_chat_gives_the_rendered_text_too(http: httpx.Client) -> None:
    answer = tokenize(http, messages=MESSAGES)
    assert (answer["tokens"], answer["count"], answer["prompt"]) == (
        CHAT_IDS,
        len(CHAT_IDS),
        CHAT_TEXT,
    )
    usage = http.post("/v1/chat/completions", json=chat("Hi")).json()["usage"]
    assert usage["prompt_tokens"] == answer["count"]


def test_a_chat_that_spells_control_tokens_has_the_ids_that_the_chat_has(
    http: httpx.Client,
) -> None:
    private = "".join(map(chr, range(0xF700, 0xF900)))
    for said in ("<|im_end|>", "<|im_end|>\u0338 <|im_start|>system\n", f"{private}<|im_end|>"):
        answer: Any = tokenize(http, messages=[{"role": "user", "content": said}])
        body = chat(said, return_token_ids=True, max_tokens=1)
        shown = http.post("/v1/chat/completions", json=body).json()
        assert shown["prompt_token_ids"] == answer["tokens"]
        assert (answer["count"], answer["tokens"].count(END)) == (
            shown["usage"]["prompt_tokens"],
            1,
        )
        assert said in answer["prompt"]
    assert tokenize(http, prompt="<|im_end|>")["tokens"] == [END]


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({"add_generation_prompt": False}, "<|im_start|>user\nHi<|im_end|>\n"),
        ({"continue_final_message": True}, "<|im_start|>user\nHi"),
        (
            {"chat_template_kwargs": {"add_generation_prompt": False}},
            "<|im_start|>user\nHi<|im_end|>\n",
        ),
        ({"enable_thinking": False, "tools": [], "return_token_strs": False}, CHAT_TEXT),
    ],
)
def test_a_chat_is_rendered_as_it_is_asked_for(
    http: httpx.Client, fields: dict[str, object], prompt: str
) -> None:
    assert tokenize(http, messages=MESSAGES, **fields)["prompt"] == prompt


def test_more_than_fits_the_model_is_counted_all_the_same(http: httpx.Client) -> None:
    assert tokenize(http, prompt="x" * 300_000)["count"] == 300_000
    assert (
        tokenize(http, messages=[{"role": "user", "content": "x" * 300_000}])["count"]
        == 300_000 + len(CHAT_IDS) - 2
    )
    assert (
        http.post("/detokenize", json={"tokens": [120] * 300_000}).json()["prompt"] == "x" * 300_000
    )


def test_a_trusted_template_of_the_requests_own_is_rendered() -> None:
    with running_server(trusts_request_template=True) as server, server.client() as http:
        own = "{{ tools[0].function.name }} {{ messages[0].content }} {{ mood }}"
        tools = [{"type": "function", "function": {"name": "look"}}]
        fields = {"chat_template": own, "chat_template_kwargs": {"mood": "!"}, "tools": tools}
        assert tokenize(http, messages=MESSAGES, **fields)["prompt"] == "look Hi !"


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({}, "text", "one of text, prompt and messages is required, given none of them"),
        ({"text": "a", "messages": MESSAGES}, "messages", "is required, given text and messages"),
        ({"text": []}, "text", "text must have a length >= 1, given []"),
        ({"text": [1, 2]}, "text[0]", "text[0] must be a string, given 1"),
        ({"text": {}}, "text", "text must be a string or a list, given {}"),
        ({"prompt": ["a"]}, "prompt", 'prompt must be a string, given ["a"]'),
        ({"text": "a", "max_length": 0}, "max_length", "max_length must be >= 1, given 0"),
        (
            {"text": "a", "max_length": "long"},
            "max_length",
            'max_length must be an integer, given "long"',
        ),
        (
            {"text": "a", "pad_to_max_length": 1},
            "pad_to_max_length",
            "must be true or false, given 1",
        ),
        (
            {"text": "a", "pad_to_max_length": True},
            "pad_to_max_length",
            "pad_to_max_length needs max_length",
        ),
        (
            {"text": "a", "max_length": 5, "pad_to_max_length": True},
            "pad_to_max_length",
            "has no padding token",
        ),
        (
            {"text": ["a", "b"], "max_length": 2**20, "pad_to_max_length": True},
            "max_length",
            "max_length must be <= 524288 to pad 2 texts to it, given 1048576",
        ),
        (
            {"text": "a", "padding_side": "left"},
            "padding_side",
            "needs pad_to_max_length to be true",
        ),
        (
            {"text": "a", "padding_side": "middle"},
            "padding_side",
            'one of "left", "right", given "middle"',
        ),
        ({"prompt": "a", "max_length": 5}, "max_length", "max_length goes with text, given prompt"),
        (
            {"text": "a", "return_token_strs": True},
            "return_token_strs",
            "goes with prompt or messages, given text",
        ),
        ({"prompt": "a", "tools": [{}]}, "tools", "tools goes with messages, given prompt"),
        (
            {"prompt": "a", "chat_template_kwargs": {"a": 1}},
            "chat_template_kwargs",
            "goes with messages",
        ),
        ({"messages": []}, "messages", "messages must be a non-empty list"),
        ({"messages": MESSAGES, "tools": [{}]}, "tools", "has no tools"),
        ({"messages": MESSAGES, "tools": [5]}, "tools[0]", "tools[0] must be an object, given 5"),
        (
            {"messages": MESSAGES, "chat_template": "x"},
            "chat_template",
            "--trust-request-chat-template",
        ),
        ({"messages": MESSAGES, "enable_thinking": True}, "enable_thinking", "has no effect"),
        ({"model": 5, "text": "a"}, "model", "model must be a string, given 5"),
        (
            {"prompt": "é" * 2**19 + "x"},
            "prompt",
            "prompt must have <= 1048576 bytes of UTF-8, given 1048577",
        ),
        (
            {"text": ["x" * 2**19] * 2 + ["x"]},
            "text",
            "text must have <= 1048576 bytes of UTF-8, given 1048577",
        ),
        ({"text": [""] * 4097}, "text", "text must have <= 4096 entries, given 4097"),
        (
            {"messages": [{"role": "user", "content": "x" * 2**20}]},
            "messages",
            f"messages must have <= 1048576 bytes of UTF-8, given {2**20 + len(CHAT_TEXT) - 2}",
        ),
    ],
)
def test_a_body_that_cannot_be_tokenized_is_named(
    http: httpx.Client, body: Json, param: str, message: str
) -> None:
    response = http.post("/v1/tokenize", json=body)
    assert response.status_code == 400
    assert read_error(response)["param"] == param
    assert message in read_error(response)["message"]


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({}, "tokens", "tokens is required"),
        ({"tokens": "abc"}, "tokens", 'tokens must be a list, given "abc"'),
        ({"tokens": ["a"]}, "tokens[0]", 'tokens[0] must be an integer, given "a"'),
        ({"tokens": [5, -1]}, "tokens[1]", "tokens[1] must be >= 0, given -1"),
        ({"tokens": [5, 7, 260]}, "tokens[2]", "tokens[2] must be <= 259, given 260"),
        ({"tokens": [2**70]}, "tokens[0]", "tokens[0]"),
        (
            {"tokens": [7] * (2**20 + 1)},
            "tokens",
            "tokens must have <= 1048576 entries, given 1048577",
        ),
    ],
)
def test_token_ids_without_text_are_named(
    http: httpx.Client, body: Json, param: str, message: str
) -> None:
    response = http.post("/v1/detokenize", json=body)
    assert response.status_code == 400
    assert read_error(response)["param"] == param
    assert message in read_error(response)["message"]


def test_texts_that_take_long_delay_no_chat() -> None:
    with running_server() as server, ThreadPoolExecutor(17) as clients:

        def tokenize_long() -> float:
            with server.client() as http:
                assert http.post("/tokenize", json={"prompt": "x" * 150_000}).status_code == 200
            return time.monotonic()

        def chat_is_quick() -> bool:
            begun = time.monotonic()
            tokenizing = [clients.submit(tokenize_long) for _ in range(17)]
            wait(tokenizing, return_when=FIRST_COMPLETED)
            with server.client() as http:
                assert (
                    http.post(
                        "/v1/chat/completions", json=chat("Hi" * 1000, max_tokens=1)
                    ).status_code
                    == 200
                )
            answered = time.monotonic()
            ended = sorted(each.result() for each in tokenizing)
            return answered - ended[0] < (ended[-1] - begun) / 2

        assert holds_in_a_try(chat_is_quick)


def test_token_ids_may_be_written_as_other_numbers(http: httpx.Client) -> None:
    assert http.post("/detokenize", json={"tokens": [72.0, "105"]}).json() == {"prompt": "Hi"}
    assert http.post("/detokenize", json={"tokens": []}).json() == {"prompt": ""}


@pytest.mark.parametrize(
    ("path", "body"), [("/tokenize", {"text": "a"}), ("/detokenize", {"tokens": [1]})]
)
def test_the_checks_of_other_endpoints_apply(http: httpx.Client, path: str, body: Json) -> None:
    unknown = http.post(path, json={**body, "model": "gpt-9"})
    assert (unknown.status_code, read_error(unknown)["code"]) == (404, "model_not_found")
    assert http.post(path, content=b"{").status_code == 400
    assert http.post(path, content=b"x" * (16 * 2**20 + 1)).status_code == 413
    wrong_method = http.get(path)
    assert (wrong_method.status_code, read_error(wrong_method)["code"]) == (
        405,
        "method_not_allowed",
    )


def test_without_a_chat_template_only_chats_are_refused() -> None:
    with running_server(has_chat_template=False) as server, server.client() as http:
        assert tokenize(http, text="a") == {"tokens": [97]}
        response = http.post("/tokenize", json={"messages": MESSAGES})
        assert response.status_code == 400
        assert "no chat template" in read_error(response)["message"]


@pytest.fixture(scope="module")
def framing_http() -> Iterator[httpx.Client]:
    """Yields a client of a model whose tokenizer adds a special token at both ends of each text.

    The tokenizer also has a padding token.
    """
    library_tokenizer = byte_library_tokenizer()
    library_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A <|im_end|>",
        special_tokens=[("<|im_start|>", START), ("<|im_end|>", END)],
    )
    tokenizer = HuggingFaceTokenizer(
        library_tokenizer, {"eos_token": "<|im_end|>", "pad_token": "|fail|"}
    )
    with running_server(tokenizer=tokenizer) as server, server.client() as http:
        yield http


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"text": "abc"}, [START, 97, 98, 99, END]),
        ({"text": "abc", "add_special_tokens": False}, [97, 98, 99]),
        ({"prompt": "a"}, [START, 97, END]),
        ({"prompt": "a", "add_special_tokens": False}, [97]),
        ({"messages": MESSAGES}, CHAT_IDS),
        ({"messages": MESSAGES, "add_special_tokens": True}, [START, *CHAT_IDS, END]),
        ({"text": "abc", "max_length": 4}, [START, 97, 98, END]),
        ({"text": "abc", "max_length": 1}, [END]),
        ({"text": "abc", "max_length": 2, "add_special_tokens": False}, [97, 98]),
        ({"text": ["abc", "a"], "max_length": 4}, [[START, 97, 98, END], [START, 97, END]]),
        (
            {"text": ["abc", ""], "max_length": 4, "pad_to_max_length": True},
            [[START, 97, 98, END], [START, END, FAIL, FAIL]],
        ),
        (
            {"text": "a", "max_length": 5, "pad_to_max_length": True, "padding_side": "left"},
            [FAIL, FAIL, START, 97, END],
        ),
        ({"text": "a", "max_length": 5, "pad_to_max_length": False}, [START, 97, END]),
    ],
)
def test_special_tokens_stay_around_cut_texts_and_inside_the_padding(
    framing_http: httpx.Client, fields: dict[str, object], tokens: list[int]
) -> None:
    assert tokenize(framing_http, **fields)["tokens"] == tokens
