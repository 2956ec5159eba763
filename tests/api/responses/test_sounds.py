"""Sounds in the input of a response reach the engine and the store, or are refused."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.hearing import encode_sound, hearing_server, last_prompt, last_sounds
from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_response
from tests.api.responses.test_input import message

LISTEN: Json = {"type": "input_text", "text": "Listen"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    store_url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    directory = tmp_path_factory.mktemp("model")
    with (
        hearing_server(directory, store_url=store_url) as server,
        server.client() as http,
    ):
        yield http


def sound_part(seconds: float) -> Json:
    return {
        "type": "input_audio",
        "input_audio": {"data": encode_sound(seconds), "format": "wav"},
    }


def body(*items: Json, **fields: object) -> Json:
    return {"model": "parrot", "input": items, **fields}


def test_sounds_stand_where_the_input_has_them(http: httpx.Client) -> None:
    asked = body(message("user", [sound_part(1), LISTEN, sound_part(0.5)]))

    strict_response(http.post("/v1/responses", json=asked).text)

    assert (
        "user\nAudio 1: <|audio_bos|><sound of 25><|audio_eos|>\nListenAudio 2: "
        "<|audio_bos|><sound of 12><|audio_eos|>\n<|im_end|>"
    ) in last_prompt()


def test_a_later_response_hears_the_sounds_before_it(http: httpx.Client) -> None:
    part = sound_part(0.5)
    first = http.post("/v1/responses", json=body(message("user", [part, LISTEN]))).json()
    [before] = last_sounds()

    http.post(
        "/v1/responses",
        json=body(message("user", [LISTEN]), previous_response_id=first["id"]),
    )

    [again] = last_sounds()
    assert again.digest == before.digest
    items = http.get(f"/v1/responses/{first['id']}/input_items").json()["data"]
    assert items[0]["content"][0] == part


def test_a_sound_is_refused_by_its_path(http: httpx.Client) -> None:
    broken: Json = {"type": "input_audio", "input_audio": {"data": "aGkgaGkgaGk="}}

    response = http.post("/v1/responses", json=body(message("user", [LISTEN, broken])))

    assert response.status_code == 400
    assert "must be a sound file" in read_error(response)["message"]


def test_an_answer_has_no_sound(http: httpx.Client) -> None:
    response = http.post("/v1/responses", json=body(message("assistant", [sound_part(0.5)])))

    assert response.status_code == 400
    error = read_error(response)
    assert error["param"] == "input[0].content[0].type"
    assert error["message"].endswith('given "input_audio"')
