"""Makes the small files of a Whisper model's directory, as transformers writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.whisper_files.special_tokens import SpecialTokens
from ouzel.whisper_files.stored_tensor import StoredTensor

_HEAD_SIZE = 64  # all published models have it
_SECONDS, _RATE, _HOP = 30, 16_000, 160


@dataclass(frozen=True, slots=True)
class Suppression:
    """Tokens that the model never writes, and tokens that it does not write first."""

    always: Sequence[int]
    at_begin: Sequence[int]


def make_config(
    tensors: Mapping[str, StoredTensor], special: SpecialTokens, heads: tuple[int, int], path: Path
) -> JsonObject:
    """Makes config.json from the shapes of the tensors, which have transformers' names.

    `heads` has the numbers of attention heads of encoder and decoder; 0: the file does not tell.
    Raises ModelLoadError if a tensor is missing.
    """

    def find_shape(name: str, num_dimensions: int) -> tuple[int, ...]:
        stored = tensors.get(f"model.{name}.weight")
        if stored is None or len(stored.shape) != num_dimensions:
            found = "none" if stored is None else list(stored.shape)
            raise ModelLoadError(
                f"{path}: tensor model.{name}.weight (its name in transformers) must have "
                f"{num_dimensions} dimensions, found {found}"
            )
        return stored.shape

    vocab_size, width = find_shape("decoder.embed_tokens", 2)
    config: JsonObject = {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "activation_function": "gelu",
        "is_encoder_decoder": True,
        "scale_embedding": False,
        "tie_word_embeddings": "proj_out.weight" not in tensors,
        "vocab_size": vocab_size,
        "d_model": width,
        "num_mel_bins": find_shape("encoder.conv1", 3)[1],
        "max_source_positions": find_shape("encoder.embed_positions", 2)[0],
        "max_target_positions": find_shape("decoder.embed_positions", 2)[0],
        "bos_token_id": special.end,
        "eos_token_id": special.end,
        "pad_token_id": special.end,
        "decoder_start_token_id": special.start,
    }
    for side, num_heads in zip(("encoder", "decoder"), heads, strict=True):
        num_layers = _count_layers(tensors, side)
        config |= {
            f"{side}_layers": num_layers,
            f"{side}_attention_heads": num_heads or max(1, width // _HEAD_SIZE),
            f"{side}_ffn_dim": find_shape(f"{side}.layers.0.fc1", 2)[0],
        }
    return config


def _count_layers(tensors: Mapping[str, StoredTensor], side: str) -> int:
    count = 0
    while f"model.{side}.layers.{count}.fc1.weight" in tensors:
        count += 1
    return count


def make_generation_config(
    special: SpecialTokens,
    suppressed: Suppression,
    alignment_heads: Sequence[Sequence[int]] | None,
    max_length: int,
) -> JsonObject:
    """Makes generation_config.json. Models for English only have no languages and tasks."""
    config: JsonObject = {
        "begin_suppress_tokens": list(suppressed.at_begin),
        "bos_token_id": special.end,
        "decoder_start_token_id": special.start,
        "eos_token_id": special.end,
        "is_multilingual": special.is_multilingual,
        "max_initial_timestamp_index": 50,
        "max_length": max_length,
        "no_timestamps_token_id": special.others["notimestamps"],
        "pad_token_id": special.end,
        "prev_sot_token_id": special.others["startofprev"],
        "return_timestamps": False,
        "suppress_tokens": list(suppressed.always),
    }
    if alignment_heads is not None:
        config["alignment_heads"] = [list(each) for each in alignment_heads]
    if special.is_multilingual:
        config["lang_to_id"] = {f"<|{code}|>": each for code, each in special.languages.items()}
        config["task_to_id"] = {task: special.others[task] for task in ("transcribe", "translate")}
    return config


def make_preprocessor_config(num_mel_bins: object) -> JsonObject:
    """Makes preprocessor_config.json: the spectrum has the same form in all models."""
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": num_mel_bins,
        "sampling_rate": _RATE,
        "hop_length": _HOP,
        "chunk_length": _SECONDS,
        "n_fft": 400,
        "n_samples": _SECONDS * _RATE,
        "nb_max_frames": _SECONDS * _RATE // _HOP,
        "padding_value": 0.0,
        "padding_side": "right",
        "return_attention_mask": False,
    }


def make_tokenizer_config() -> JsonObject:
    roles = ("bos_token", "eos_token", "pad_token", "unk_token")
    return {
        "tokenizer_class": "WhisperTokenizer",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1024,
        **dict.fromkeys(roles, "<|endoftext|>"),
    }
