"""Lists, pages and the OpenAPI document describe voice models."""

import html

import httpx
import msgspec

from ouzel.api.document.openapi import build_document
from ouzel.api.operations import DOCUMENTED
from tests.api.requests import read_error
from tests.api.server_setup import ServerSetup
from tests.api.speaking.humming import MODEL, VOICES, HummingServer, humming_server
from tests.api.speaking.posting import PATH


def test_the_list_of_models_names_the_capability(http: httpx.Client) -> None:
    [model] = http.get("/v1/models").json()["data"]
    assert model["capabilities"] == ["speech"]
    assert model["architecture"] == {
        "modality": "text->audio",
        "input_modalities": ["text"],
        "output_modalities": ["audio"],
    }


def test_voices_are_listed_as_open_webui_reads_them(http: httpx.Client) -> None:
    listed = http.get("/v1/audio/voices").json()
    assert listed == {"voices": [{"id": name, "name": name} for name in VOICES]}
    assert http.get("/v1/audio/voices?legacy=true").json() == {"voices": list(VOICES)}
    assert http.get("/v1/audio/models").json() == {"models": [{"id": MODEL, "name": MODEL}]}


def test_voices_are_listed_for_one_model() -> None:
    further = (ServerSetup(names=("talker",)),)
    with humming_server(further=further) as humming, humming.server.client() as http:
        listed = http.get("/v1/audio/voices", params={"model": MODEL}).json()
        refused = http.get("/v1/audio/voices", params={"model": "talker"})
        unknown = http.get("/v1/audio/voices", params={"model": "nobody"})
    assert [voice["id"] for voice in listed["voices"]] == list(VOICES)
    assert read_error(refused)["param"] == "model"
    assert unknown.status_code == 404


def test_the_page_shows_a_request_that_writes_a_file(
    http: httpx.Client, humming: HummingServer
) -> None:
    page = html.unescape(http.get("/about").text)
    assert f"curl {humming.url}{PATH} \\\n" in page
    assert "-o speech.wav" in page


def test_an_unknown_path_is_told_the_endpoint_of_speech(http: httpx.Client) -> None:
    message = http.post("/v1/audio/song", json={}).json()["error"]["message"]
    assert PATH in message and "/v1/chat/completions" not in message


def test_the_document_describes_the_sounds() -> None:
    document = msgspec.to_builtins(build_document(DOCUMENTED))
    described = document["paths"][PATH]["post"]
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/CreateSpeechRequest"}
    assert document["components"]["schemas"]["CreateSpeechRequest"]["required"] == ["input"]
    content = described["responses"]["200"]["content"]
    assert content["audio/mpeg"]["schema"] == {"type": "string", "format": "binary"}
    assert content.keys() == {
        "audio/mpeg",
        "audio/ogg",
        "audio/aac",
        "audio/flac",
        "audio/wav",
        "audio/pcm",
        "text/event-stream",
    }
    assert {"400", "404", "408", "413", "415", "429", "503"} <= described["responses"].keys()
