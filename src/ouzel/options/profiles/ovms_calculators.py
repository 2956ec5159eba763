"""Describes OVMS's calculators of language models: their fields, for chats, embeddings, ranking.

The tables hold the fields of all releases since 2024. A field that only tunes speed or memory is
logged. A field that changes answers is honoured or refused. Two fields that approximate answers are
ignored with a warning.
"""

from collections.abc import Mapping
from pathlib import Path

from ouzel.checkpoint.model_files import read_config_json
from ouzel.errors import ModelLoadError
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.drafts import leave_out_ir_draft
from ouzel.options.profiles.ovms_graph_fields import (
    Calculator,
    Field,
    GivenValue,
    Texts,
    flag,
    ignored,
    option,
    path,
    refused,
    warning,
    without_meaning,
)
from ouzel.options.profiles.ovms_meanings import Settings

_MAX_CHOICES = 128
_EVICTION = (
    "no token is removed from the KV cache here, so answers to long prompts can differ; "
    "--kv-cache-dtype u8 and --max-model-len limit the cache"
)
_SPARSE = "attention reads all tokens here, so answers to long prompts can differ"
_GENERATION_CONFIG = (
    "the model's own generation_config.json counts; write the defaults into it, or serve a "
    "directory with links to the weights and another generation_config.json"
)
# LAST_TOKEN is the word of releases of 2025.
_POOLINGS = {"CLS": "cls", "LAST": "lasttoken", "LAST_TOKEN": "lasttoken", "MEAN": "mean"}


def _max_choices(settings: Settings, given: GivenValue) -> None:
    limit = int(given.text)
    if limit < 2:
        raise InvalidOption(f"best_of_limit: must be >= 2, as it is itself excluded, given {limit}")
    settings.values["max_choices"] = min(limit - 1, _MAX_CHOICES)


def _pooling(settings: Settings, given: GivenValue) -> None:
    if given.text not in _POOLINGS:
        raise InvalidOption(f"pooling: must be CLS, LAST or MEAN, given {given.text!r}")
    settings.values["pooling"] = _POOLINGS[given.text]


def _mean_pooling(settings: Settings, given: GivenValue) -> None:
    settings.values.setdefault("pooling", "mean" if given.text == "true" else "cls")


def _finish_chats(settings: Settings, texts: Texts) -> None:
    """Leaves out an EAGLE-3 draft as OpenVINO IR, which cannot be loaded."""
    if texts.get("draft_eagle3_mode") != "true":
        return
    if warning := leave_out_ir_draft(settings.values):
        settings.warnings.append(f"draft_eagle3_mode: {warning}")


def _finish_embeddings(settings: Settings, texts: Texts) -> None:
    """Applies OVMS's defaults: vectors of length 1, and CLS if no file names a pooling."""
    settings.values = {"task": "embed", "normalize": "true", **settings.values}
    if "pooling" not in settings.values and is_encoder_without_pooling(
        Path(str(settings.values["model"]))
    ):
        settings.values["pooling"] = "cls"
        settings.warnings.append(
            "pooling: neither the graph nor the model's files name one, so it is CLS, as in OVMS"
        )


def _finish_ranking(settings: Settings, texts: Texts) -> None:
    settings.values["task"] = "score"


_CHATS = Calculator(
    message="mediapipe.LLMCalculatorOptions",
    finish=_finish_chats,
    fields={
        "models_path": Field("text", path("model")),
        "device": Field("text", flag("target_device")),
        "plugin_config": Field("text", flag("plugin_config")),
        "pipeline_type": Field("name", flag("pipeline_type")),
        "max_num_seqs": Field("number", flag("max_num_seqs")),
        "max_num_batched_tokens": Field("number", flag("max_num_batched_tokens")),
        "cache_size": Field("number", flag("cache_size")),
        "enable_prefix_caching": Field("switch", flag("enable_prefix_caching")),
        "dynamic_split_fuse": Field("switch", flag("dynamic_split_fuse")),
        "cache_interval_multiplier": Field("number", flag("cache_interval_multiplier")),
        "tool_parser": Field("text", flag("tool_parser")),
        "reasoning_parser": Field("text", flag("reasoning_parser")),
        "response_parser": Field("text", option("tool_parser")),  # releases of 2025
        "enable_tool_guided_generation": Field("switch", flag("enable_tool_guided_generation")),
        "max_tokens_limit": Field("number", option("max_tokens_limit")),
        "best_of_limit": Field("number", _max_choices),
        "chat_template_mode": Field("name", without_meaning),
        "block_size": Field("number", without_meaning),  # releases of 2024
        "generation_config_path": Field("text", refused(_GENERATION_CONFIG)),
        "draft_models_path": Field("text", path("draft_model")),
        "draft_eagle3_mode": Field("switch", ignored),
        "draft_device": Field("text", without_meaning),
        "draft_block_size": Field("number", without_meaning),
        "draft_cache_size": Field("number", without_meaning),
        "draft_max_num_seqs": Field("number", without_meaning),
        "draft_max_num_batched_tokens": Field("number", without_meaning),
        "draft_dynamic_split_fuse": Field("switch", without_meaning),
        "cache_eviction_config": Field("message", warning(_EVICTION)),
        "sparse_attention_config": Field("message", warning(_SPARSE)),
    },
)
_EMBEDDINGS = Calculator(
    message="mediapipe.EmbeddingsCalculatorOVOptions",
    finish=_finish_embeddings,
    fields={
        "models_path": Field("text", path("model")),
        "target_device": Field("text", flag("target_device")),
        "plugin_config": Field("text", flag("plugin_config")),
        "pooling": Field("name", _pooling),
        "mean_pooling": Field("switch", _mean_pooling),  # releases of 2025
        "normalize_embeddings": Field("switch", option("normalize")),
        "truncate": Field("switch", option("truncate")),
        "max_length": Field("number", option("max_model_len")),
        "max_batch_size": Field("number", without_meaning),
    },
)
_RANKING = Calculator(
    message="mediapipe.RerankCalculatorOVOptions",
    finish=_finish_ranking,
    fields={
        "models_path": Field("text", path("model")),
        "target_device": Field("text", flag("target_device")),
        "device": Field("text", flag("target_device")),  # releases of 2025
        "plugin_config": Field("text", flag("plugin_config")),
        "max_allowed_chunks": Field("number", option("max_document_chunks")),
        "max_length": Field("number", option("max_model_len")),
        "max_position_embeddings": Field("number", option("max_model_len")),  # releases of 2025
    },
)
CALCULATORS: Mapping[str, Calculator] = {
    "HttpLLMCalculator": _CHATS,
    "LLMCalculator": _CHATS,  # releases of 2024
    "EmbeddingsCalculatorOV": _EMBEDDINGS,
    "RerankCalculatorOV": _RANKING,
}
OF_TWO_MODELS: Mapping[
    str, str
] = {  # calculators of 2024 and 2025, and the calculators that took their place
    "EmbeddingsCalculator": "EmbeddingsCalculatorOV",
    "RerankCalculator": "RerankCalculatorOV",
}


def is_encoder_without_pooling(directory: Path) -> bool:
    """Tells whether the model is an encoder whose files name no pooling.

    A decoder needs no named pooling: its last token has read all others.
    """
    from ouzel.backends.openvino.encoders import is_decoder  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import HfConfig  # noqa: PLC0415
    from ouzel.checkpoint.sentence_files import names_pooling  # noqa: PLC0415

    if names_pooling(directory):
        return False
    try:
        config = HfConfig(read_config_json(directory))
        return not is_decoder(config)
    except ModelLoadError:
        return False  # the load of the model reports the error
