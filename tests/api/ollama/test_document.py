"""docs/reference/ollama.md describes each path, field and option."""

import re
from pathlib import Path

from ouzel.api.ollama.chat import OllamaChatRequest
from ouzel.api.ollama.generate import OllamaGenerateRequest
from ouzel.api.ollama.models import API_VERSION
from ouzel.api.ollama.options import ModelOptions
from ouzel.api.operations import DOCUMENTED
from ouzel.sampling import SamplingFields

DOCUMENT = (Path(__file__).parents[3] / "docs" / "reference" / "ollama.md").read_text()


def test_the_document_names_every_path() -> None:
    paths = {operation.path for operation in DOCUMENTED if operation.words == "ollama"}
    assert len(paths) > 10
    assert paths <= set(re.findall(r"/api/[\w/{}]+", DOCUMENT))


def test_the_document_names_every_field_and_option() -> None:
    fields = DOCUMENT.split("## Fields of chats and prompts")[1].split("\n## ")[0]
    own_options = set(ModelOptions.__struct_fields__) - set(SamplingFields.__struct_fields__)
    structs = {
        *OllamaChatRequest.__struct_fields__,
        *OllamaGenerateRequest.__struct_fields__,
        *own_options,
    }
    assert structs - {"model", "options"} <= set(re.findall(r"`(\w+)`", fields))
    assert f"Ollama {API_VERSION}," in DOCUMENT
