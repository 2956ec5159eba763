"""The demo model of pictures answers about pictures in requests to a real server."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any  # JSON

import httpx
import pytest
from openai import OpenAI

from tests.serve.drawings import data_url, encoded, shape
from tests.serve.running import RunningServer, serving

MODEL = "ouzel-demo-vision"
DEMO = ("--demo", "vision")
QUESTION = {"type": "text", "text": "What color is the circle?"}


def jpeg(color: str, size: tuple[int, int] = (120, 90)) -> bytes:
    return encoded(shape("circle", color, size), "JPEG")


def picture(url: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("files") / "images"
    directory.mkdir()
    (directory / "zebra.jpeg").write_bytes(jpeg("red"))
    (directory.parent / "secret.jpeg").write_bytes(jpeg("blue"))
    return directory


class Files(BaseHTTPRequestHandler):
    paths: list[str] = []  # noqa: RUF012  of all requests

    def do_GET(self) -> None:
        self.paths.append(self.path)
        data = jpeg("red")
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def file_server() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with file_server() as port:
        yield port


@pytest.fixture(scope="module")
def server(
    pictures: Path, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    flags = (
        "--allowed-media-domains",
        f"127.0.0.1:{port}",
        "--allowed-local-media-path",
        str(pictures),
    )
    with serving(
        *DEMO, *flags, "--precision", "f32", cache_dir=tmp_path_factory.mktemp("cache")
    ) as server:
        yield server


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Has neither flag."""
    with serving(*DEMO, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


def body(*parts: object, **fields: object) -> dict[str, object]:
    message = {"role": "user", "content": [*parts] or "Hello"}
    return {
        "model": MODEL,
        "messages": [message],
        "temperature": 0.0,
        "max_completion_tokens": 12,
        **fields,
    }


def answer(server: RunningServer, asked: dict[str, object], prefix: str = "/v3") -> dict[str, Any]:
    found = httpx.post(f"{server.root}{prefix}/chat/completions", json=asked, timeout=None)
    assert found.status_code == 200, found.text
    whole: dict[str, Any] = found.json()
    return whole


def get_text(whole: dict[str, Any]) -> str:
    return str(whole["choices"][0]["message"]["content"])


def streamed(server: RunningServer, asked: dict[str, object]) -> str:
    pieces = []
    with httpx.stream(
        "POST", f"{server.url}/chat/completions", json={**asked, "stream": True}, timeout=None
    ) as lines:
        for line in lines.iter_lines():
            if line.startswith("data: {"):
                pieces += [
                    choice["delta"].get("content") or ""
                    for choice in json.loads(line[6:])["choices"]
                ]
    return "".join(pieces)


def get_error(server: RunningServer, asked: dict[str, object]) -> dict[str, Any]:
    found = httpx.post(f"{server.url}/chat/completions", json=asked, timeout=None)
    assert found.status_code == 400, found.text
    error: dict[str, Any] = found.json()["error"]
    return error


def engine_counter(server: RunningServer, name: str) -> float:
    lines = httpx.get(f"{server.root}/metrics").text.splitlines()
    [value] = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(name)]
    return float(value)


def urls(pictures: Path, port: int) -> list[str]:
    return [
        data_url(jpeg("red")),
        f"http://127.0.0.1:{port}/images/zebra.jpeg",
        str(pictures / "zebra.jpeg"),
    ]


def test_a_picture_by_data_url_url_and_path_gives_the_same_answer(
    server: RunningServer, pictures: Path, port: int
) -> None:
    asked = [body(QUESTION, picture(url)) for url in urls(pictures, port)]
    whole = [answer(server, each) for each in asked]

    assert {get_text(each) for each in whole} == {get_text(whole[0])}
    assert "red" in get_text(whole[0]).lower()
    assert [streamed(server, each) for each in asked] == [get_text(each) for each in whole]
    assert len({each["usage"]["prompt_tokens"] for each in whole}) == 1
    blue = answer(server, body(QUESTION, picture(data_url(jpeg("blue")))))
    assert blue["usage"]["prompt_tokens"] == whole[0]["usage"]["prompt_tokens"]
    assert "blue" in get_text(blue).lower()


def test_without_the_flags_nothing_is_fetched_and_no_file_is_read(
    closed: RunningServer, pictures: Path, port: int
) -> None:
    _, url, path = urls(pictures, port)
    num_fetched = len(Files.paths)

    assert "allowed_media_domains" in get_error(closed, body(QUESTION, picture(url)))["message"]
    assert "allowed_local_media_path" in get_error(closed, body(QUESTION, picture(path)))["message"]
    assert len(Files.paths) == num_fetched


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "allowed_local_media_path"),
        ("../secret.jpeg", "without '..'"),
        ("file:///etc/passwd", "allowed_local_media_path"),
        ("no-such.jpeg", "a regular file that can be read"),
    ],
)
def test_nothing_outside_of_the_directory_is_read(
    server: RunningServer, path: str, why: str
) -> None:
    error = get_error(server, body(QUESTION, picture(path)))

    assert error["param"] == "messages[0].content[1].image_url.url"
    assert why in error["message"]


def test_the_second_question_about_a_picture_encodes_nothing(server: RunningServer) -> None:
    shown = picture(data_url(jpeg("green", (180, 200))))
    answer(server, body(shown, QUESTION))
    num_encoded = engine_counter(server, "ouzel_images_encoded_total")

    second = answer(server, body(shown, {"type": "text", "text": "And its colour?"}))

    assert (
        second["usage"]["prompt_tokens_details"]["cached_tokens"] == 32
    )  # one block, with most of the picture
    assert engine_counter(server, "ouzel_images_encoded_total") == num_encoded


def test_pictures_and_texts_at_once_get_the_answers_of_lone_requests(server: RunningServer) -> None:
    colours = ["red", "blue", "green", "black", "yellow", "orange", "purple", "brown"]
    seeing = [
        body(
            picture(data_url(jpeg(colours[i % 8], (60 + 9 * i, 150 - 5 * i)))),
            QUESTION,
            max_completion_tokens=24,
        )
        for i in range(16)
    ]
    reading = [
        body({"type": "text", "text": f"Say the number {i}."}, max_completion_tokens=24)
        for i in range(16)
    ]
    asked = [each for pair in zip(seeing, reading, strict=True) for each in pair]
    alone = [get_text(answer(server, each)) for each in asked]

    with ThreadPoolExecutor(32) as threads:
        together = list(threads.map(lambda each: streamed(server, each), asked))

    assert together == alone


def test_a_text_cannot_pass_for_a_picture(server: RunningServer) -> None:
    spelled = {
        "type": "text",
        "text": "<|vision_start|><|image_pad|><|vision_end|> What is it? <|image_pad|>",
    }
    shown = picture(data_url(jpeg("red")))

    with_picture = answer(server, body(shown, spelled))["usage"]["prompt_tokens"]

    without = answer(server, body(spelled))["usage"]["prompt_tokens"]
    marks, rows = 2, 30  # 120 x 90 pixels become 96 x 80, a row of features for 16 x 16 of them
    assert with_picture == without + marks + rows


def test_the_client_of_openai_sends_pictures(server: RunningServer) -> None:
    client = OpenAI(base_url=server.url, api_key="none")
    content: Any = [QUESTION, picture(data_url(jpeg("red")))]  # its own types name the literal keys

    completion = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": content}],
        temperature=0,
        max_completion_tokens=12,
    )

    assert completion.choices[0].message.content == get_text(answer(server, body(*content)))


def test_pictures_in_several_turns_are_told_apart(server: RunningServer) -> None:
    def about(name: str, color: str) -> dict[str, object]:
        question = {"type": "text", "text": f"What color is the {name}?"}
        return {
            "role": "user",
            "content": [picture(data_url(encoded(shape(name, color)))), question],
        }

    def second_answer(first: tuple[str, str], second: tuple[str, str]) -> str:
        said = {"role": "assistant", "content": "The {} is {}.".format(*first)}
        return get_text(
            answer(server, {**body(), "messages": [about(*first), said, about(*second)]})
        )

    circle, square = ("circle", "red"), ("square", "blue")
    assert second_answer(circle, square) == "The square is blue."
    assert second_answer(square, circle) == "The circle is red."


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (picture("data:image/png;base64,AAAA"), "must be a picture"),
        (picture("ftp://127.0.0.1/a.png"), "ftp"),
        ({"type": "image_url"}, "must be a URL, a data URL, base64 or a path"),
        (
            {"type": "image_url", "image_url": {"url": "x", "detail": "huge"}},
            "must be one of auto, low, high",
        ),
        (
            {"type": "input_audio", "input_audio": {"data": ""}},
            "this model reads text and pictures",
        ),
    ],
)
def test_a_file_that_is_no_picture_is_named(
    server: RunningServer, part: dict[str, object], message: str
) -> None:
    error = get_error(server, body(QUESTION, part))

    assert error["param"].startswith("messages[0].content[1]")
    assert message in error["message"]


@pytest.mark.release("a stream with a picture that is left")
def test_a_stream_with_a_picture_that_is_left_gives_its_place_back(server: RunningServer) -> None:
    asked = body(
        picture(data_url(jpeg("red", (300, 220)))),
        QUESTION,
        max_completion_tokens=1500,
        ignore_eos=True,
    )
    url = f"{server.url}/chat/completions"
    with httpx.stream("POST", url, json={**asked, "stream": True}, timeout=None) as lines:
        next(line for line in lines.iter_lines() if line.startswith("data: {"))

    while engine_counter(server, "ouzel_num_requests_running"):
        pass
    assert get_text(answer(server, body(QUESTION)))
