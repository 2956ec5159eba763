"""Images of messages and prompts reach the engine, and unreadable images are refused."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.ollama.lines import Json, chat, fold_lines, read_answer, read_error, read_lines
from tests.api.seeing import (
    data_url,
    encode_base64,
    last_prompt,
    last_request,
    seeing_server,
    sizes_seen,
)


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        seeing_server(tmp_path_factory.mktemp("model"), max_model_len=1200) as server,
        server.client() as http,
    ):
        yield http


def message(content: object, *images: str, **fields: object) -> Json:
    return {"role": "user", "content": content, "images": [*images], **fields}


def talk(*messages: Json, **fields: object) -> Json:
    return {"model": "parrot", "messages": [*messages], **fields}


def prompt(text: str, *images: str, **fields: object) -> Json:
    return {"model": "parrot", "prompt": text, "images": [*images], **fields}


def test_images_stand_before_the_text(seeing: httpx.Client) -> None:
    body = talk(message("Look", encode_base64(56, 84), data_url(28, 56)))

    answer = read_answer(seeing.post("/api/chat", json={**body, "stream": False}))

    assert (
        last_prompt()
        == "<|im_start|>user\n<picture of 6><picture of 2>Look<|im_end|>\n<|im_start|>assistant\n"
    )
    assert sizes_seen() == [(56, 84), (28, 56)]
    assert answer["message"]["content"] == "Look"
    assert answer["prompt_eval_count"] == len(last_request().prompt_token_ids)
    assert (
        fold_lines(read_lines(seeing.post("/api/chat", json=body)))["message"] == answer["message"]
    )
    assert sizes_seen() == [(56, 84), (28, 56)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (message("", encode_base64(28, 28)), "<picture of 1>"),
        ({"role": "user", "images": [encode_base64(28, 28)]}, "<picture of 1>"),
        (message([{"type": "text", "text": "Hi"}], encode_base64(28, 28)), "<picture of 1>Hi"),
        (message("Hi"), "Hi"),
        (message("Hi", images=None), "Hi"),
    ],
    ids=["an empty text", "no text", "parts", "no image", "null"],
)
def test_either_may_be_left_out(seeing: httpx.Client, given: Json, shown: str) -> None:
    read_answer(seeing.post("/api/chat", json=talk(given, stream=False)))

    assert last_prompt().startswith(f"<|im_start|>user\n{shown}<|im_end|>\n")


def test_a_tool_shows_images(seeing: httpx.Client) -> None:
    called = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}
    result = {
        "role": "tool",
        "tool_name": "look",
        "content": "There",
        "images": [encode_base64(28, 56)],
    }

    read_answer(seeing.post("/api/chat", json=talk(message("Go"), called, result, stream=False)))

    assert "<tool_response>\n<picture of 2>There\n</tool_response>" in last_prompt()


def test_a_prompt_has_its_images_before_it(seeing: httpx.Client) -> None:
    body = prompt("Look", encode_base64(56, 84), encode_base64(28, 56), system="Be kind.")

    answer = read_answer(seeing.post("/api/generate", json={**body, "stream": False}))

    assert (
        "Be kind.<|im_end|>\n<|im_start|>user\n<picture of 6><picture of 2>Look<|im_end|>\n"
        in last_prompt()
    )
    assert sizes_seen() == [(56, 84), (28, 56)]
    assert answer["response"] == "Look" and "context" not in answer
    streamed = read_lines(seeing.post("/api/generate", json=body))
    assert fold_lines(streamed)["response"] == "Look" and "context" not in streamed[-1]
    assert read_answer(seeing.post("/api/generate", json=prompt("Hi", stream=False)))["context"]


def test_images_alone_are_a_prompt(seeing: httpx.Client) -> None:
    answer = read_answer(
        seeing.post("/api/generate", json=prompt("", encode_base64(28, 56), stream=False))
    )

    assert answer["done_reason"] == "stop"
    assert sizes_seen() == [(28, 56)]


def test_a_chat_that_does_not_fit_loses_its_oldest_images(seeing: httpx.Client) -> None:
    # these images have 400, 420 and 440 tokens
    turns = [message("Look", encode_base64(560, width)) for width in (560, 588, 616)]

    read_answer(seeing.post("/api/chat", json=talk(*turns, message("And?"), stream=False)))

    assert sizes_seen() == [(560, 588), (560, 616)]
    refused = seeing.post("/api/chat", json=talk(*turns, message("And?"), truncate=False))
    assert "Please reduce the length of the messages" in read_error(refused, 400)
    alone = seeing.post("/api/generate", json=prompt("Look", encode_base64(980, 980)))
    assert "your prompt resulted in 1225 tokens" in read_error(alone, 400)


FAULTS: dict[str, tuple[object, str]] = {
    "no picture": (["aGk="], "[0] must be a picture"),
    "no base64": ([encode_base64(28, 28), "/tmp/a.png*"], "[1] must have valid base64"),
    "a path": (["/etc/hostname"], "[0] must"),
    "a URL": (["https://example.org/a.png"], "[0] must have valid base64"),
    "a number": ([1], "[0] must be a"),
    "an empty text": ([""], "[0] must be a file in base64"),
    "no list": ("aGk=", " must be a list"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_unusable_image_is_refused_by_its_path(seeing: httpx.Client, fault: str) -> None:
    images, complaint = FAULTS[fault]

    of_chat = read_error(
        seeing.post("/api/chat", json=talk(message("Hi"), {**message("Look"), "images": images})),
        400,
    )
    of_prompt = read_error(
        seeing.post("/api/generate", json=prompt("Look") | {"images": images}), 400
    )

    assert of_chat.startswith(f"messages[1].images{complaint}")
    assert of_prompt.startswith(f"images{complaint}")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"raw": True}, "images must not be given with raw"),
        ({"suffix": "x"}, "images must not be given with raw, with a suffix"),
        ({"context": [72]}, "context must not be given beside images: use /api/chat"),
    ],
)
def test_images_need_the_template_and_the_whole_chat(
    seeing: httpx.Client, fields: Json, complaint: str
) -> None:
    refused = seeing.post("/api/generate", json=prompt("Look", encode_base64(28, 28), **fields))

    assert read_error(refused, 400).startswith(complaint)


def test_a_model_that_sees_says_so(seeing: httpx.Client) -> None:
    assert read_answer(seeing.post("/api/show", json={}))["capabilities"] == [
        "completion",
        "vision",
        "tools",
    ]
    assert read_answer(seeing.get("/api/tags"))["models"][0]["capabilities"] == [
        "completion",
        "vision",
        "tools",
    ]


def test_without_prompt_and_images_there_is_nothing_to_say(seeing: httpx.Client) -> None:
    assert read_answer(seeing.post("/api/generate", json=prompt("")))["done_reason"] == "load"
    assert (
        read_answer(seeing.post("/api/chat", json=chat("Hi", messages=[])))["done_reason"] == "load"
    )
