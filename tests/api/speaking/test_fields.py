"""Every field works, or is refused by its name."""

import logging

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import TEXT_REQUESTS, chat, read_error, wait_until
from tests.api.server_setup import ServerSetup
from tests.api.serving import running_server
from tests.api.speaking.humming import MAX_CHARACTERS, MODEL, HummingServer, humming_server
from tests.api.speaking.posting import PATH, post_text, read_sound
from tests.api.speech.listening import listening_server


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, ("af_bella", 1.0, None)),
        ({"voice": None}, ("af_bella", 1.0, None)),
        ({"voice": "af_bella(2)+am_adam(1)"}, ("af_bella(2)+am_adam(1)", 1.0, None)),
        ({"speed": "0.25"}, ("af_bella", 0.25, None)),
        ({"language": "en-gb"}, ("af_bella", 1.0, "en-gb")),
        ({"lang_code": "b"}, ("af_bella", 1.0, "b")),
        ({"lang_code": "fr"}, ("af_bella", 1.0, "fr")),
        ({"lang_code": ""}, ("af_bella", 1.0, None)),
        ({"instructions": " \n"}, ("af_bella", 1.0, None)),
        ({"return_download_link": False, "download_format": None}, ("af_bella", 1.0, None)),
        (
            {"normalization_options": {"normalize": True, "unit_normalization": False}},
            ("af_bella", 1.0, None),
        ),
    ],
)
def test_a_field_reaches_the_speaker(
    http: httpx.Client,
    humming: HummingServer,
    fields: dict[str, object],
    options: tuple[str, float, str | None],
) -> None:
    read_sound(post_text(http, "a.", fields, response_format="wav"), "wav")
    seen = humming.hummer.options[-1]
    assert (seen.voice, seen.speed, seen.language) == options


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"input": ""}, "input", "input must have a length >= 1"),
        ({"input": " "}, "input", "input must have a word"),
        ({"input": None}, "input", "input"),
        ({"input": 3}, "input", "input must be a string"),
        (
            {"input": "a" * (MAX_CHARACTERS + 1)},
            "input",
            f"input must have <= {MAX_CHARACTERS} characters (max_speech_characters), given 201",
        ),
        ({"voice": "nobody"}, "voice", "voice must be a voice, given 'nobody'"),
        ({"voice": ""}, "voice", "voice must have a length >= 1"),
        ({"voice": {}}, "voice.id", "voice.id is required"),
        ({"voice": {"id": "nobody"}}, "voice", "voice must be a voice, given 'nobody'"),
        ({"response_format": "ogg"}, "response_format", "response_format must be one of"),
        ({"speed": 0.2}, "speed", "speed must be >= 0.25"),
        ({"speed": 4.1}, "speed", "speed must be <= 4.0"),
        ({"instructions": "Whisper."}, "instructions", "instructions must be blank: this model"),
        ({"stream_format": "wave"}, "stream_format", "stream_format must be one of"),
        ({"stream": False, "stream_format": "sse"}, "stream", "stream must not be false"),
        ({"language": "xx"}, "language", "language must be known, given 'xx'"),
        ({"lang_code": "xx"}, "lang_code", "lang_code must be known, given 'xx'"),
        ({"language": "fr", "lang_code": "f"}, "lang_code", "lang_code must be absent beside"),
        ({"volume_multiplier": -1}, "volume_multiplier", "volume_multiplier must be >= 0"),
        ({"return_download_link": True}, "return_download_link", "return_download_link is not"),
        ({"download_format": "wav"}, "download_format", "download_format is not supported"),
        ({"ref_audio": "data:"}, "ref_audio", "ref_audio is not supported"),
        (
            {"normalization_options": {"normalize": False}},
            "normalization_options.normalize",
            "normalization_options.normalize must be true, given false",
        ),
    ],
)
def test_a_bad_field_is_named(
    http: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    answer = http.post(PATH, json={"input": "a.", "voice": "af_bella", **fields})
    assert answer.status_code == 400, answer.text
    error = read_error(answer)
    assert error["param"] == param
    assert error["message"].startswith(message)


def test_an_unknown_field_is_ignored_with_a_line_in_the_log(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.wire.decode")
    assert post_text(http, "a.", mood="merry").status_code == 200
    assert [record.getMessage() for record in caplog.records] == ["ignored fields: 'mood'"]


def test_an_unknown_model_is_refused(http: httpx.Client) -> None:
    answer = post_text(http, model="tts-1")
    assert (answer.status_code, read_error(answer)["code"]) == (404, "model_not_found")
    assert http.post(PATH, json={"input": "a.", "voice": "af_bella"}).status_code == 200


def test_a_model_that_generates_is_refused() -> None:
    with running_server() as server, server.client() as http:
        answer = post_text(http, model="parrot")
    assert (answer.status_code, read_error(answer)["param"]) == (400, "model")
    assert read_error(answer)["message"] == (
        "the model 'org/parrot' generates text and makes no speech: serve a voice model, such as "
        "onnx-community/Kokoro-82M-v1.0-ONNX"
    )


def test_a_model_that_transcribes_is_refused() -> None:
    with listening_server() as listening, listening.server.client() as http:
        answer = http.post(PATH, json={"input": "a."})
    assert read_error(answer)["message"].startswith(
        "the model 'org/listener' turns speech into text and makes no speech"
    )


@pytest.mark.parametrize(("path", "body"), TEXT_REQUESTS)
def test_other_endpoints_refuse_a_voice_model(
    http: httpx.Client, path: str, body: dict[str, object]
) -> None:
    answer = http.post(path, json=body | {"model": MODEL})
    assert answer.status_code == 400, answer.text
    message = answer.json().get("error", answer.json())["message"]
    assert message.startswith(f"the model {MODEL!r} reads texts aloud and makes no")


def test_transcriptions_refuse_a_voice_model(http: httpx.Client) -> None:
    answer = http.post("/v1/audio/transcriptions", files={"file": ("a.wav", b"RIFF")})
    assert answer.status_code == 400
    assert read_error(answer)["message"].startswith(
        f"the model {MODEL!r} reads texts aloud and makes no transcriptions"
    )


def test_each_request_reaches_a_fitting_model() -> None:
    further = (ServerSetup(names=("talker",)),)
    with humming_server(further=further) as humming, humming.server.client() as http:
        assert http.post(PATH, json={"input": "a."}).status_code == 200
        refused = post_text(http, model="talker")
        chatted = http.post("/v1/chat/completions", json={"messages": chat("Hi")["messages"]})
    assert read_error(refused)["message"] == (
        "the model 'talker' generates text and makes no speech; this server's models for speech: "
        f"{MODEL}"
    )
    assert (chatted.status_code, chatted.json()["model"]) == (200, "talker")


def test_a_request_needs_the_key() -> None:
    config = ServerConfig(api_key=("secret",))
    with humming_server(config=config) as humming, humming.server.client() as http:
        assert post_text(http).status_code == 401
        assert http.get("/v1/audio/voices").status_code == 401
        http.headers["authorization"] = "Bearer secret"
        assert post_text(http).status_code == 200
        [(request_id, key_id)] = humming.hummer.calls
    assert request_id and key_id


def test_the_log_line_has_the_duration_of_the_sound(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.api.http.request_log")
    post_text(http)
    wait_until(lambda: bool(caplog.records))
    [record] = caplog.records
    line = record.getMessage()
    assert f"POST {PATH} 200 model={MODEL} prompt_tokens=4 completion_tokens=20 ttft_s=" in line
    assert "ttft_s=0.0000" not in line
    assert "finish=stop audio_s=1.0000" in line
