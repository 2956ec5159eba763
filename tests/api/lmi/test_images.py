"""Images in LMI's chat schema reach the engine, or are refused with LMI's errors."""

from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from ouzel.config import MediaConfig, ServerConfig
from tests.api.lmi.answers import PREFIX, read_lines, read_refusal
from tests.api.requests import Json
from tests.api.seeing import (
    data_url,
    encode_base64,
    last_prompt,
    last_request,
    seeing_server,
    sizes_seen,
)

PATHS = ["/v1/chat/completions", "/invocations", "/predictions/org_parrot"]
LOOK: Json = {"type": "text", "text": "Look"}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("model")
    with (
        seeing_server(directory, config=ServerConfig(profile="lmi")) as server,
        server.client() as http,
    ):
        yield http


def image_part(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def build_chat(*parts: Json, **fields: object) -> Json:
    return {"messages": [{"role": "user", "content": [*parts]}], **fields}


@pytest.mark.parametrize("path", PATHS)
def test_pictures_stand_where_the_chat_has_them(seeing: httpx.Client, path: str) -> None:
    body = build_chat(LOOK, image_part(data_url(56, 84)), image_part(data_url(28, 56)))

    answer = seeing.post(path, json=body).json()

    assert "<|im_start|>user\nLook<picture of 6><picture of 2><|im_end|>\n" in last_prompt()
    assert sizes_seen() == [(56, 84), (28, 56)]
    assert answer["choices"][0]["message"]["content"] == "Look"
    assert answer["usage"]["prompt_tokens"] == len(last_request().prompt_token_ids)
    chunks = read_lines(seeing.post(path, json={**body, "stream": True}))
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks) == "Look"
    assert sizes_seen() == [(56, 84), (28, 56)]


@pytest.mark.parametrize("path", PATHS)
def test_an_unusable_image_is_refused_by_its_path(seeing: httpx.Client, path: str) -> None:
    refused = {
        url: read_refusal(seeing.post(path, json=build_chat(LOOK, image_part(url))))
        for url in ("data:,hi", "data:", "")
    }

    place = f"{PREFIX}messages[0].content[1].image_url.url must be"
    assert refused["data:,hi"].startswith(f"{place} a picture")
    assert refused["data:"].startswith(f"{place} a data URL with a comma")
    assert refused[""].startswith(f"{place} a URL, a data URL, base64 or a path")


def test_a_model_of_texts_says_so(lmi: httpx.Client) -> None:
    text = read_refusal(
        lmi.post("/invocations", json=build_chat(LOOK, image_part(data_url(28, 28))))
    )

    assert text.endswith(
        'messages[0].content[1].type must be "text" or "file", given "image_url": this '
        "model reads text only"
    )


def test_bare_base64_is_a_picture_as_the_schema_documents(seeing: httpx.Client) -> None:
    answer = seeing.post("/invocations", json=build_chat(LOOK, image_part(encode_base64(28, 56))))

    assert answer.status_code == 200, answer.text
    assert sizes_seen() == [(28, 56)]


class PictureHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        data = b64decode(encode_base64(28, 56))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the log of the tests free of requests."""


@pytest.fixture
def picture_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), PictureHandler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/a.png"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ([], "allowed_media_domains"),
        (["all"], "allowed_media_domains"),  # "all" allows no address of this machine
        (["127.0.0.1:{port}"], ""),
    ],
)
def test_urls_of_pictures_are_behind_the_list_of_hosts(
    tmp_path: Path, picture_url: str, allowed: list[str], message: str
) -> None:
    port = picture_url.split(":")[2].split("/", maxsplit=1)[0]
    media = MediaConfig(allowed_media_domains=tuple(entry.format(port=port) for entry in allowed))

    with (
        seeing_server(tmp_path, config=ServerConfig(profile="lmi"), media=media) as server,
        server.client() as http,
    ):
        answer = http.post("/invocations", json=build_chat(LOOK, image_part(picture_url)))

    if message:
        assert message in read_refusal(answer)
    else:
        assert answer.status_code == 200, answer.text
        assert sizes_seen() == [(28, 56)]


def test_all_opens_the_urls_of_every_public_host(tmp_path: Path) -> None:
    """The resolver refuses the unknown host, so the list of hosts has allowed it."""
    refused = {}
    for allowed in ((), ("all",)):
        directory = tmp_path / "".join(("model", *allowed))
        directory.mkdir()
        media = MediaConfig(allowed_media_domains=allowed)
        config = ServerConfig(profile="lmi")
        with (
            seeing_server(directory, config=config, media=media) as server,
            server.client() as http,
        ):
            answer = http.post(
                "/invocations", json=build_chat(LOOK, image_part("http://pictures.invalid/a.png"))
            )
            refused[allowed] = read_refusal(answer)

    assert "allowed_media_domains" in refused[()]
    assert "allowed_media_domains" not in refused[("all",)]
    assert "pictures.invalid" in refused[("all",)]
