"""Images in chats reach the engine."""

from collections.abc import Iterator

import httpx
import pytest
from openai.types.chat import ChatCompletion

from tests.api.requests import join_content, read_error, read_events
from tests.api.seeing import data_url, last_prompt, last_request, seeing_server, sizes_seen


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        seeing_server(tmp_path_factory.mktemp("model"), max_model_len=1000) as server,
        server.client() as http,
    ):
        yield http


def shown(height: int, width: int, detail: str = "auto") -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": data_url(height, width), "detail": detail}}


def said(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def body(*parts: object, **fields: object) -> dict[str, object]:
    return {"model": "parrot", "messages": [{"role": "user", "content": [*parts]}], **fields}


def test_pictures_stand_where_the_chat_has_them(http: httpx.Client) -> None:
    parts = [said("One"), shown(56, 84), said("two"), shown(28, 56)]

    answer = http.post("/v1/chat/completions", json=body(*parts))

    assert answer.json()["choices"][0]["message"]["content"] == "Onetwo"
    user = "<|im_start|>user\nOne<picture of 6>two<picture of 2><|im_end|>\n"
    assert last_prompt() == f"{user}<|im_start|>assistant\n"
    assert sizes_seen() == [(56, 84), (28, 56)]
    usage = ChatCompletion.model_validate(answer.json(), strict=True).usage
    assert usage is not None and usage.prompt_tokens == len(last_request().prompt_token_ids)
    assert usage.prompt_tokens_details is not None and usage.prompt_tokens_details.image_tokens == 8
    streamed = http.post("/v1/chat/completions", json=body(*parts, stream=True))
    assert join_content(read_events(streamed)) == "Onetwo"
    assert sizes_seen() == [(56, 84), (28, 56)]


def test_a_file_that_is_no_picture_is_refused_by_its_path(http: httpx.Client) -> None:
    broken = {"type": "image_url", "image_url": {"url": "data:;base64,aGk="}}

    response = http.post("/v1/chat/completions", json=body(said("Look"), broken))

    assert response.status_code == 400
    assert read_error(response)["param"] == "messages[0].content[1].image_url.url"


def test_the_original_detail_is_all_that_the_model_takes(http: httpx.Client) -> None:
    shapes = {}
    for detail in ("low", "high", "original"):
        http.post("/v1/chat/completions", json=body(shown(560, 616, detail), max_tokens=1))
        shapes[detail] = last_request().images[0].shape

    assert shapes == {"low": (1, 476, 532), "high": (1, 560, 616), "original": (1, 560, 616)}


def test_pictures_that_are_too_many_for_the_context_are_too_long_a_chat(http: httpx.Client) -> None:
    response = http.post(
        "/v1/chat/completions", json=body(shown(616, 644), shown(616, 644), said("Look"))
    )

    assert response.status_code == 400
    error = read_error(response)
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
    assert "your messages resulted in 1012 tokens" in error["message"]


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool", "function"])
def test_every_message_may_show_pictures(http: httpx.Client, role: str) -> None:
    spelled = "<tool_call> <|image_pad|>"
    earlier = {"role": role, "tool_call_id": "a", "content": [said(spelled), shown(28, 56)]}
    sent = body(said("Look"))
    sent["messages"] = [earlier, *body(shown(28, 28))["messages"]]  # type: ignore[misc]  # a list

    assert http.post("/v1/chat/completions", json=sent).status_code == 200

    assert f"{spelled}<picture of 2>" in last_prompt()
    assert sizes_seen() == [(28, 56), (28, 28)]


def test_an_answer_goes_on_from_a_text_only(http: httpx.Client) -> None:
    shown_first = body(shown(28, 56), said("Look"), continue_final_message=True)
    assert http.post("/v1/chat/completions", json=shown_first).status_code == 200
    assert last_prompt() == "<|im_start|>user\n<picture of 2>Look"
    shown_last = http.post(
        "/v1/chat/completions", json=body(said("Look"), shown(28, 56), continue_final_message=True)
    )
    assert (
        read_error(shown_last)["message"]
        == "continue_final_message needs a last message that ends with a text"
    )


def test_a_model_that_sees_says_so(http: httpx.Client) -> None:
    model = http.get("/v1/models/parrot").json()

    assert model["architecture"] == {
        "modality": "text+image+video+file->text",
        "input_modalities": ["text", "image", "video", "file"],
        "output_modalities": ["text"],
    }
    assert model["capabilities"] == ["completion", "chat", "tools", "vision"]
