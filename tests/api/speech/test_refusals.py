"""A form without a usable file, for another model or without a key is refused."""

import httpx
import pytest

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.requests import TEXT_REQUESTS, chat, read_error
from tests.api.server_setup import ServerSetup
from tests.api.serving import running_server
from tests.api.speech.listening import MAX_FILE_BYTES, MODEL, listening_server
from tests.api.speech.posting import PATH, TRANSLATIONS, WORDS, post_sound


def test_a_form_without_a_file_is_refused(http: httpx.Client) -> None:
    answer = http.post(PATH, files={"model": (None, MODEL)})
    assert answer.status_code == 400
    assert (read_error(answer)["param"], read_error(answer)["message"]) == (
        "file",
        "file is required",
    )


def test_a_second_file_is_refused(http: httpx.Client) -> None:
    files = [("file", ("a", WORDS)), ("file", ("b", WORDS))]
    assert read_error(http.post(PATH, files=files))["message"] == "file must be given once"
    answer = http.post(PATH, files={"sound": ("a", WORDS)})
    assert read_error(answer)["message"] == "sound must not be a file: the file is in `file`"


def test_a_body_in_json_is_refused(http: httpx.Client) -> None:
    answer = http.post(PATH, json={"model": MODEL})
    assert answer.status_code == 400
    assert read_error(answer)["message"].startswith("Content-Type must be multipart/form-data")


def test_a_file_without_sound_is_refused_by_the_decoder(http: httpx.Client) -> None:
    answer = post_sound(http, data=b"")
    assert (answer.status_code, read_error(answer)["param"]) == (400, "file")


@pytest.mark.parametrize("more", [1, 2**21])
def test_a_long_file_is_refused(http: httpx.Client, more: int) -> None:
    assert post_sound(http, data=b"a" * MAX_FILE_BYTES).status_code == 200
    answer = post_sound(http, data=b"a" * (MAX_FILE_BYTES + more))
    assert answer.status_code == 413
    assert read_error(answer)["message"] == (
        f"file must be <= {MAX_FILE_BYTES} bytes long (max_audio_file_bytes)"
    )


def test_a_file_must_fit_into_the_budget_of_bodies() -> None:
    limits = LimitsConfig(max_body_bytes=1024, max_body_bytes_total=2**17)
    with listening_server(limits=limits) as listening, listening.server.client() as http:
        assert post_sound(http, data=b"a" * 2**17).status_code == 200
        answer = post_sound(http, data=b"a" * (2**17 + 1))
    assert answer.status_code == 413
    assert "max_body_bytes_total" in read_error(answer)["message"]


def test_an_unknown_model_is_refused(http: httpx.Client) -> None:
    answer = post_sound(http, {"model": "whisper-1"})
    assert (answer.status_code, read_error(answer)["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("path", [PATH, TRANSLATIONS])
def test_a_model_that_generates_is_refused(path: str) -> None:
    with running_server() as server, server.client() as http:
        answer = post_sound(http, {"model": "parrot"}, path=path)
    assert (answer.status_code, read_error(answer)["param"]) == (400, "model")
    assert read_error(answer)["message"] == (
        "the model 'org/parrot' generates text and makes no transcriptions: serve a speech model, "
        "such as openai/whisper-small"
    )


@pytest.mark.parametrize(("path", "body"), TEXT_REQUESTS)
def test_other_endpoints_refuse_a_speech_model(
    http: httpx.Client, path: str, body: dict[str, object]
) -> None:
    answer = http.post(path, json=body | {"model": MODEL})
    assert answer.status_code == 400, answer.text
    message = answer.json().get("error", answer.json())["message"]
    assert message.startswith(f"the model {MODEL!r} turns speech into text")


def test_each_request_reaches_a_fitting_model() -> None:
    further = (ServerSetup(names=("talker",)),)
    with listening_server(further=further) as listening, listening.server.client() as http:
        assert post_sound(http).json()["text"] == "one two three"
        assert post_sound(http, {"model": MODEL}).json()["text"] == "one two three"
        refused = post_sound(http, {"model": "talker"})
        chatted = http.post("/v1/chat/completions", json={"messages": chat("Hi")["messages"]})
    assert read_error(refused)["message"] == (
        "the model 'talker' generates text and makes no transcriptions; this server's models for "
        f"transcriptions: {MODEL}"
    )
    assert (chatted.status_code, chatted.json()["model"]) == (200, "talker")


def test_a_request_needs_the_key() -> None:
    config = ServerConfig(api_key=("secret",))
    with listening_server(config=config) as listening, listening.server.client() as http:
        assert post_sound(http).status_code == 401
        http.headers["authorization"] = "Bearer secret"
        assert post_sound(http).status_code == 200
        [(request_id, key_id)] = listening.repeater.calls
    assert request_id and key_id
