"""Lists, pages and the OpenAPI document describe speech models and their forms."""

import html

import httpx
import msgspec

from ouzel.api.document.openapi import build_document
from ouzel.api.endpoint.example import make_example
from ouzel.api.operations import DOCUMENTED
from tests.api.speech.listening import MODEL, ListeningServer
from tests.api.speech.posting import PATH


def test_the_list_of_models_names_the_capability(http: httpx.Client) -> None:
    [model] = http.get("/v1/models").json()["data"]
    assert model["capabilities"] == ["transcription"]
    assert model["architecture"] == {
        "modality": "audio->text",
        "input_modalities": ["audio"],
        "output_modalities": ["text"],
    }


def test_the_page_shows_a_form(http: httpx.Client, listening: ListeningServer) -> None:
    page = html.unescape(http.get("/about").text)
    assert f"curl {listening.url}{PATH} \\\n  -F model={MODEL} \\\n  -F file=@speech.wav" in page
    assert make_example(listening.server.model).is_form


def test_an_unknown_path_is_told_the_endpoints_of_speech(http: httpx.Client) -> None:
    message = http.post("/v1/audio/song", json={}).json()["error"]["message"]
    assert PATH in message and "/v1/chat/completions" not in message


def test_the_document_describes_the_form() -> None:
    document = msgspec.to_builtins(build_document(DOCUMENTED))
    described = document["paths"][PATH]["post"]
    schema = described["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert schema == {"$ref": "#/components/schemas/TranscriptionRequest"}
    fields = document["components"]["schemas"]["TranscriptionRequest"]
    assert fields["required"] == ["file"]
    assert fields["properties"]["file"]["format"] == "binary"
    assert described["responses"]["200"]["content"].keys() == {
        "application/json",
        "text/event-stream",
        "text/plain",
    }
    assert {"400", "404", "408", "413", "415", "429", "503"} <= described["responses"].keys()
