"""A field for an image's URL also takes bare base64, without `data:` before it."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ouzel.config import MediaConfig, ServerConfig
from tests.api.requests import Json, read_error
from tests.api.seeing import encode_base64, last_prompt, seeing_server, sizes_seen
from tests.prompts.media.files import saved
from tests.prompts.vision.pictures import picture

SIZE = (28, 56)
BARE = encode_base64(*SIZE)
JPEG = b64encode(saved(picture(56, 28), "JPEG")).decode()
WAYS = "must be a data URL, the base64 of a PNG, JPEG, WebP or GIF, or a URL"


@pytest.fixture(scope="module", params=["openai", "ovms", "lmi"])
def http(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    config = ServerConfig(profile=request.param)
    with (
        seeing_server(tmp_path_factory.mktemp("model"), config=config) as server,
        server.client() as http,
    ):
        yield http


def chat(part: object) -> Json:
    return {"model": "parrot", "max_tokens": 4, "messages": [{"role": "user", "content": [part]}]}


def chat_url(url: str) -> Json:
    return chat({"type": "image_url", "image_url": {"url": url}})


def responses(url: str) -> Json:
    part = {"type": "input_image", "image_url": url}
    return {"model": "parrot", "input": [{"role": "user", "content": [part]}]}


def anthropic(url: str) -> Json:
    return chat({"type": "image", "source": {"type": "url", "url": url}})


def ollama(url: str) -> Json:
    return {
        "model": "parrot",
        "stream": False,
        "messages": [{"role": "user", "content": "", "images": [url]}],
    }


FIELDS = {
    "chat": ("/v1/chat/completions", chat_url(BARE)),
    "chat, a JPEG": ("/v1/chat/completions", chat_url(JPEG)),
    "chat, the URL alone": ("/v1/chat/completions", chat({"type": "image_url", "image_url": BARE})),
    "chat of OVMS": ("/v3/chat/completions", chat_url(BARE)),
    "LMI": ("/invocations", chat_url(BARE)),
    "responses": ("/v1/responses", responses(BARE)),
    "responses of OVMS": ("/v3/responses", responses(BARE)),
    "Anthropic": ("/v1/messages", anthropic(BARE)),
    "Ollama": ("/api/chat", ollama(BARE)),
}


@pytest.mark.parametrize("name", FIELDS)
def test_the_base64_of_a_picture_is_a_picture(http: httpx.Client, name: str) -> None:
    path, body = FIELDS[name]

    response = http.post(path, json=body)

    assert response.status_code == 200, response.text
    assert "<picture of 2>" in last_prompt()
    assert sizes_seen() == [SIZE]


def test_frames_of_a_video_are_pictures(http: httpx.Client) -> None:
    response = http.post(
        "/v1/chat/completions", json=chat({"type": "video", "video": [BARE, BARE]})
    )

    assert response.status_code == 200, response.text
    assert sizes_seen() == [SIZE]


@pytest.mark.parametrize(
    "text", ["aGVsbG8=", b64encode(b"BM" + bytes(99)).decode(), "/9j/pictures/one.jpg"]
)
def test_another_text_is_refused_by_the_ways_to_name_a_picture(
    http: httpx.Client, text: str
) -> None:
    response = http.post("/v1/messages", json=anthropic(text))

    assert response.status_code == 400
    assert f"source.url {WAYS}" in response.json()["error"]["message"]


def test_a_picture_wins_over_a_path_and_paths_stay_below_the_allowed_directory(
    tmp_path: Path,
) -> None:
    """The base64 of a JPEG begins with a slash, like an absolute path."""
    pictures = tmp_path / "pictures"
    directory = pictures / "9j" / "holidays"
    directory.mkdir(parents=True)
    (directory / "one.png").write_bytes(saved(picture(84, 56), "PNG"))
    (tmp_path / "model").mkdir()
    media = MediaConfig(allowed_local_media_path=str(pictures))

    with seeing_server(tmp_path / "model", media=media) as server, server.client() as http:
        as_base64 = http.post("/v1/chat/completions", json=chat_url(JPEG))
        size_of_base64 = sizes_seen()
        as_path = http.post("/v1/chat/completions", json=chat_url("9j/holidays/one.png"))
        size_of_path = sizes_seen()
        outside = http.post("/v1/chat/completions", json=chat_url("/9j/holidays/one.png"))

    assert (as_base64.status_code, size_of_base64) == (200, [SIZE])
    assert (as_path.status_code, size_of_path) == (200, [(56, 84)])
    assert outside.status_code == 400
    assert (
        "must be the path of a file in the server's allowed_local_media_path"
        in read_error(outside)["message"]
    )
