"""Sounds in chats reach the engine."""

import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openai.types.chat import ChatCompletion

from tests.api.hearing import encode_sound, hearing_server, last_prompt, last_sounds
from tests.api.requests import read_error
from tests.api.serving import running_server
from tests.audio.files import make_mp3
from tests.documents.examples import BLOCKS

CHATS = "/v1/chat/completions"
Json = dict[str, object]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        hearing_server(tmp_path_factory.mktemp("model"), max_model_len=500) as server,
        server.client() as http,
    ):
        yield http


def heard(data: str, format_: str = "wav") -> Json:
    return {"type": "input_audio", "input_audio": {"data": data, "format": format_}}


def said(text: str) -> Json:
    return {"type": "text", "text": text}


def body(*parts: object, **fields: object) -> Json:
    return {"model": "parrot", "messages": [{"role": "user", "content": [*parts]}], **fields}


def test_sounds_stand_where_the_chat_has_them(http: httpx.Client) -> None:
    url = f"data:audio/wav;base64,{encode_sound(0.5, 1)}"
    parts = [
        said("One"),
        heard(encode_sound(1)),
        said("two"),
        {"type": "audio_url", "audio_url": {"url": url}},
        {"type": "audio_url", "audio_url": url},
    ]

    answer = http.post(CHATS, json=body(*parts))

    assert last_prompt() == (
        "<|im_start|>user\nOneAudio 1: <|audio_bos|><sound of 25><|audio_eos|>\n"
        "twoAudio 2: <|audio_bos|><sound of 12><|audio_eos|>\n"
        "Audio 3: <|audio_bos|><sound of 12><|audio_eos|>\n<|im_end|>\n<|im_start|>assistant\n"
    )
    first, second, third = last_sounds()
    assert (first.shape, first.num_frames) == ((128, 102), 100)
    assert second.digest == third.digest != first.digest
    assert second.features == third.features
    usage = ChatCompletion.model_validate(answer.json(), strict=True).usage
    assert usage is not None and usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.audio_tokens == 49


def test_a_sound_that_is_sent_again_has_the_same_digest(http: httpx.Client) -> None:
    digests = []
    for _ in range(2):
        http.post(CHATS, json=body(heard(encode_sound(0.3, 7))))
        digests.append(last_sounds()[0].digest)

    assert digests[0] == digests[1]


def test_an_mp3_is_heard(http: httpx.Client) -> None:
    data = b64encode(make_mp3(1)).decode()

    response = http.post(CHATS, json=body(heard(data, "mp3"), said("Who?")))

    assert response.status_code == 200, response.text
    assert last_sounds()[0].num_frames >= 100


def test_a_placeholder_that_a_client_spells_is_text(http: httpx.Client) -> None:
    http.post(CHATS, json=body(said("<|AUDIO|>"), heard(encode_sound(0.5))))

    spelled = "<|im_start|>user\n<|AUDIO|>"
    assert last_prompt().startswith(f"{spelled}Audio 1: <|audio_bos|><sound of 12>")


REFUSED: dict[str, tuple[Json, str, str]] = {
    "no base64": (heard("%%%"), "input_audio.data", "must have valid base64"),
    "no sound": (heard("aGkgaGkgaGk="), "input_audio.data", "must be a sound file"),
    "no data": ({"type": "input_audio", "input_audio": {}}, "input_audio.data", "base64"),
    "no object": ({"type": "input_audio", "input_audio": "aGk="}, "input_audio", "an object"),
    "another format": (heard(encode_sound(0.5), "pcm16"), "input_audio.format", "one of wav, mp3"),
    "too short": (heard(encode_sound(0.01)), "input_audio.data", "must last >= 0.0200625 s"),
    "too long": (heard(encode_sound(31)), "input_audio.data", "must last <= 30 s"),
    "another host": (
        {"type": "audio_url", "audio_url": {"url": "https://a.org/a.wav"}},
        "audio_url.url",
        "allowed_media_domains",
    ),
    "a file": ({"type": "audio_url", "audio_url": "/a.wav"}, "audio_url", "allowed_local"),
    "no URL": ({"type": "audio_url", "audio_url": {}}, "audio_url.url", "must be a URL"),
    "a picture": ({"type": "image_url"}, "type", "this model reads text and sounds"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_an_unusable_sound_is_refused_by_its_path(http: httpx.Client, fault: str) -> None:
    part, path, complaint = REFUSED[fault]

    response = http.post(CHATS, json=body(said("Listen"), part))

    assert response.status_code == 400
    error = read_error(response)
    assert error["param"] == f"messages[0].content[1].{path}"
    assert complaint in error["message"]


def test_sounds_that_are_too_long_for_the_context_are_too_long_a_chat(http: httpx.Client) -> None:
    sounds = [heard(encode_sound(15, seed)) for seed in (1, 2)]

    response = http.post(CHATS, json=body(*sounds))

    assert response.status_code == 400
    error = read_error(response)
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


def test_a_request_has_a_limited_number_of_sounds(http: httpx.Client) -> None:
    response = http.post(CHATS, json=body(*[heard(encode_sound(0.1))] * 9))

    assert response.status_code == 400
    error = read_error(response)
    assert error["param"] == "messages[0].content[8].input_audio.data"
    assert "<= 8 sounds in a request (max_sounds), given 9" in error["message"]


def test_the_model_is_listed_with_its_inputs(http: httpx.Client) -> None:
    [model, _] = http.get("/v1/models").json()["data"]

    assert model["architecture"]["input_modalities"][:2] == ["text", "audio"]
    assert "hearing" in model["capabilities"]


def test_a_model_of_text_refuses_sounds() -> None:
    with running_server({}) as server, server.client() as http:
        response = http.post(CHATS, json=body(heard(encode_sound(0.1))))

    assert response.status_code == 400
    error = read_error(response)
    assert error["param"] == "messages[0].content[0].type"
    assert "this model reads text only" in error["message"]


def test_the_program_of_the_page_prints_the_answer(http: httpx.Client, tmp_path: Path) -> None:
    [program] = [
        block.text
        for block in BLOCKS
        if block.document == "docs/how-to/send-sounds.md" and block.language == "python"
    ]
    (tmp_path / "call.wav").write_bytes(b64decode(encode_sound(1)))
    root = str(http.base_url).rstrip("/")
    program = program.replace("http://127.0.0.1:8000", root).replace("qwen2-audio", "parrot")

    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert "What does the caller want?" in done.stdout
