"""Images in chats and responses of OVMS's profile reach the engine, or are refused."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.ovms.test_errors import WRAPPER
from tests.api.ovms.test_examples import IMAGE, JSON, PATH
from tests.api.requests import Json, join_content, read_events
from tests.api.seeing import (
    data_url,
    encode_base64,
    last_prompt,
    last_request,
    seeing_server,
    sizes_seen,
)

# OVMS's placeholder of an image: OVMS refuses texts with it, but in this server it is plain text
TAG = "<ov_genai_image_0>"


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("model")
    with (
        seeing_server(directory, config=ServerConfig(profile="ovms")) as server,
        server.client() as http,
    ):
        yield http


def body(*parts: Json, **fields: object) -> Json:
    return {"model": "parrot", "messages": [{"role": "user", "content": [*parts]}], **fields}


def image_part(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def text_part(text: str) -> Json:
    return {"type": "text", "text": text}


def test_the_documented_example_is_answered(seeing: httpx.Client) -> None:
    example = IMAGE.replace("llava", "parrot").replace(
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD ...", encode_base64(56, 84)
    )

    answer = seeing.post(PATH, content=example, headers=JSON).json()

    assert answer["choices"][0]["message"]["content"] == "What is on the picture?"
    assert answer["usage"]["prompt_tokens"] == len(last_request().prompt_token_ids)
    assert "user\nWhat is on the picture?<picture of 6><|im_end|>" in last_prompt()


def test_pictures_stand_where_the_chat_has_them(seeing: httpx.Client) -> None:
    sent = body(
        text_part(f"One {TAG}"),
        image_part(data_url(28, 28)),
        text_part("two"),
        image_part(f"base64,{encode_base64(28, 56)}"),
    )

    streamed = seeing.post(PATH, json={**sent, "stream": True})

    assert join_content(read_events(streamed)) == f"One {TAG}two"
    assert f"user\nOne {TAG}<picture of 1>two<picture of 2><|im_end|>" in last_prompt()
    assert sizes_seen() == [(28, 28), (28, 56)]


@pytest.mark.parametrize(
    "image_url", [data_url(28, 56), {"url": data_url(28, 56)}], ids=["a text", "an object"]
)
def test_responses_take_both_forms_of_a_picture(seeing: httpx.Client, image_url: object) -> None:
    content = [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": image_url},
    ]
    sent = {"model": "parrot", "input": [{"role": "user", "content": content}]}

    answer = seeing.post("/v3/responses", json=sent).json()

    assert answer["output"][0]["content"][0]["text"] == "Look"
    assert sizes_seen() == [(28, 56)]


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("data:image/png;base64,aGk=", "must be a picture"),
        ("base64,*", "must have valid base64"),
        ("https://example.org/a.png", "allowed_media_domains"),
        ("/etc/hostname", "allowed_local_media_path"),
    ],
)
def test_an_unusable_image_is_refused_by_its_path(
    seeing: httpx.Client, url: str, complaint: str
) -> None:
    response = seeing.post(PATH, json=body(text_part("Look"), image_part(url)))

    text = response.json()["error"]
    assert response.status_code == 400
    assert text.startswith(f"{WRAPPER}messages[0].content[1].image_url.url")
    assert complaint in text


def test_a_model_of_texts_says_so(ovms: httpx.Client) -> None:
    text = ovms.post(PATH, json=body(text_part("Look"), image_part(data_url(28, 28)))).json()[
        "error"
    ]

    assert text.endswith(
        'messages[0].content[1].type must be "text" or "file", given "image_url": this '
        "model reads text only"
    )
