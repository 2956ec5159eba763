"""Ollama's endpoints about models: they list and show, and refuse to create or to delete."""

import json
import struct
from pathlib import Path

import httpx
import pytest

from ouzel.checkpoint.model_facts import NO_FACTS, read_model_facts
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.demo import MODEL_DIRECTORY
from tests.api.ollama.lines import read_answer, read_error
from tests.api.serving import running_server

ONE_MODEL = "this server has the models that it was started with"


def test_every_name_is_listed_with_a_tag(ollama: httpx.Client) -> None:
    for path in ("/api/tags", "/api/ps"):
        models = read_answer(ollama.get(path))["models"]
        assert [model["name"] for model in models] == ["org/parrot:latest", "parrot:latest"]
        assert all(
            model["model"] == model["name"] and len(model["digest"]) == 64 for model in models
        )
    assert models[0]["context_length"] == 4096
    assert read_answer(ollama.get("/api/tags"))["models"][0]["capabilities"] == [
        "completion",
        "tools",
        "thinking",
    ]
    assert ollama.head("/api/tags").status_code == 200


def test_a_model_lists_its_details_and_capabilities() -> None:
    defaults = SamplingDefaults(
        temperature=0.7, top_k=20, repetition_penalty=1.05, stop_strings=["a\nb"]
    )
    with running_server(sampling_defaults=defaults) as server, server.client() as http:
        card = read_answer(http.post("/api/show", json={"name": "parrot", "verbose": True}))
    assert card["model_info"] == {
        "general.architecture": "fake",
        "general.basename": "parrot",
        "fake.context_length": 4096,
        "fake.vocab_size": 260,
    }
    parameters = [line.split(maxsplit=1) for line in card["parameters"].splitlines()]
    assert parameters == [
        ["num_ctx", "4096"],
        ["temperature", "0.7"],
        ["top_k", "20"],
        ["repeat_penalty", "1.05"],
        ["stop", '"a\\nb"'],
    ]
    assert "<|im_start|>" in card["template"]
    assert card["modelfile"].count("PARAMETER ") == len(parameters)
    assert card["capabilities"] == ["completion"]


def test_a_model_that_thinks_and_calls_says_so(ollama: httpx.Client) -> None:
    card = read_answer(ollama.post("/api/show", json={"model": "parrot:latest"}))
    assert card["capabilities"] == ["completion", "tools", "thinking"]


def test_the_files_of_a_model_say_how_large_it_is() -> None:
    facts = read_model_facts(MODEL_DIRECTORY)
    assert (facts.file_format, facts.num_parameters, facts.num_layers) == (
        "safetensors",
        3_968_384,
        5,
    )
    # the weights have int8 values, so about a byte each
    assert facts.num_bytes is not None and 3_968_384 < facts.num_bytes < 2 * 3_968_384


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 8}, (768, 12, 8)),
        ({"model_type": "mpt", "d_model": 768, "n_layers": 12, "n_heads": 8}, (768, 12, 8)),
        ({"model_type": "bloom", "n_embed": 768, "n_layer": 12, "n_head": 8}, (768, 12, 8)),
        ({"dim": 768, "n_layers": 6, "n_heads": 12}, (768, 6, 12)),  # DistilBERT
        (
            {
                "vision_config": {"num_hidden_layers": 27},
                "text_config": {
                    "hidden_size": 64,
                    "num_hidden_layers": 3,
                    "num_attention_heads": 4,
                },
            },
            (64, 3, 4),
        ),
    ],
)
def test_the_shape_of_a_model_is_read_by_other_keys_too(
    config: dict[str, object], expected: tuple[int, int, int], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    facts = read_model_facts(tmp_path)
    assert (facts.hidden_size, facts.num_layers, facts.num_heads) == expected


def test_an_adapter_beside_a_model_is_no_part_of_its_size(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(b"1234567")
    assert read_model_facts(tmp_path) == NO_FACTS
    (tmp_path / "pytorch_model.bin").write_bytes(b"12345")
    facts = read_model_facts(tmp_path)
    assert (facts.file_format, facts.num_bytes) == ("pytorch", 5)


@pytest.mark.parametrize(
    "content",
    [b"", b"1234567", struct.pack("<Q", 2**60) + b"{", struct.pack("<Q", 5) + b"[[[[[", b"x" * 100],
)
def test_broken_model_files_give_no_facts(tmp_path: Path, content: bytes) -> None:
    assert read_model_facts(tmp_path) == NO_FACTS
    (tmp_path / "model.safetensors").write_bytes(content)
    (tmp_path / "config.json").write_text(
        json.dumps({"hidden_size": "large", "num_hidden_layers": True})
    )
    facts = read_model_facts(tmp_path)
    assert (facts.num_parameters, facts.hidden_size, facts.num_layers) == (None, None, None)


def test_the_version_is_high_enough_for_editors(ollama: httpx.Client) -> None:
    version = read_answer(ollama.get("/api/version"))["version"]
    assert tuple(map(int, version.split("."))) >= (0, 6, 4)


@pytest.mark.parametrize("stream", [True, False, None])
def test_the_served_model_is_pulled_already(ollama: httpx.Client, stream: bool | None) -> None:
    response = ollama.post("/api/pull", json={"model": "parrot", "stream": stream})
    assert response.json() == {"status": "success"}  # a stream has one line


def test_another_model_cannot_be_pulled(ollama: httpx.Client) -> None:
    message = read_error(ollama.post("/api/pull", json={"name": "llama3"}), 401)
    assert "--admin-api-key" in message
    assert (
        read_error(ollama.post("/api/show", json={"model": "llama3"}), 404)
        == "model 'llama3' not found"
    )


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        ("POST", "/api/push", "pushed"),
        ("POST", "/api/create", "created"),
        ("POST", "/api/copy", "copied"),
        ("POST", "/api/blobs/sha256:29fdb92e57cf0827", "uploaded"),
    ],
)
def test_an_unsupported_operation_names_the_served_model(
    ollama: httpx.Client, method: str, path: str, what: str
) -> None:
    message = read_error(ollama.request(method, path, json={"model": "parrot", "input": "x"}), 400)
    assert what in message and ONE_MODEL in message
