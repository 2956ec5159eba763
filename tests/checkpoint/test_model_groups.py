"""Tests the messages about model types without a family."""

from collections import Counter

import pytest

from ouzel.backends.openvino.encoders import encoder_model_types
from ouzel.backends.openvino.models import supported_model_types
from ouzel.backends.openvino.vision import vision_model_types
from ouzel.checkpoint.declared_task import is_encoder_type
from ouzel.checkpoint.model_groups import GROUPS, describe_unsupported
from ouzel.gguf.architectures import ARCHITECTURES

SERVED = [
    *("bert", "gpt_oss", "granitemoehybrid", "llama", "modernbert", "qwen3_moe", "starcoder2"),
    "whisper",
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bamba", "nearest: granitemoehybrid (models with Mamba layers)"),
        ("gpt2", "nearest: starcoder2 (models of the GPT kind"),
        ("deberta-v2", "nearest: modernbert, bert (encoders"),
        ("llamma", "nearest: llama"),
        ("t5", "Ouzel serves no models of an encoder and a decoder"),
        ("moonshine", "nearest: whisper (models that hear or speak)"),
    ],
)
def test_a_refusal_names_models_with_the_same_parts(name: str, expected: str) -> None:
    message = describe_unsupported(name, "model_type", SERVED)
    assert message.startswith(f"model_type {name} is not supported; {expected}")
    assert "supported: " not in message


def test_the_language_model_of_a_checkpoint_of_several_modes_has_the_group_of_the_whole() -> None:
    message = describe_unsupported("glm4v_text", "model_type", ["qwen3_vl", "llama"])
    assert message.endswith("nearest: qwen3_vl (models that read pictures)")


def test_a_type_that_resembles_nothing_gets_the_whole_list() -> None:
    message = describe_unsupported("unheard", "model_type", ["llama", "bert"])
    assert message == "model_type unheard is not supported; supported: bert, llama"


def test_a_reason_stands_before_the_nearest_types() -> None:
    message = describe_unsupported("jetmoe", "model_type", SERVED, "it mixes attention heads")
    assert message.startswith("model_type jetmoe is not supported: it mixes attention heads; near")


def test_no_type_is_in_two_groups() -> None:
    counts = Counter(name for group in GROUPS for name in group.types)
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_served_encoders_are_known_by_their_types() -> None:
    """Only the types that have decoders too need config.json to tell."""
    unknown = {name for name in encoder_model_types() if not is_encoder_type(name)}
    assert unknown == {"gemma3_text"}


def test_every_served_type_has_a_group() -> None:
    """Otherwise a refusal could not name it."""
    served = {*supported_model_types(), *encoder_model_types(), *vision_model_types()}
    known = {name for group in GROUPS for name in group.types}
    assert {name.removesuffix("_text") for name in served} - {
        name.removesuffix("_text") for name in known
    } == set()
    assert set(ARCHITECTURES) - known == set()
