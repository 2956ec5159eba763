"""Writes a checkpoint of Qwen3's kind as GGUF files: in bf16, and quantised by llama.cpp's code."""

import json
import struct
from pathlib import Path
from typing import Any  # JSON

import gguf
import numpy as np
from numpy.typing import NDArray

Tensor = tuple[NDArray[np.uint8], gguf.GGMLQuantizationType]

# llama_ftype and ggml_type, by the names that these quantisations have in files
FILE_TYPES = {"Q8_0": 7, "Q4_0": 2}
TENSOR_TYPES = {"Q8_0": 8, "Q4_0": 2}


def write_bf16(checkpoint: Path, path: Path) -> Path:
    """Writes the file, unless it is there: matrices in bf16, vectors in f32 as llama.cpp wants."""
    if path.exists():
        return path
    config = json.loads((checkpoint / "config.json").read_text())
    unfinished = path.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, "qwen3")
    _add_numbers(writer, config)
    _add_tokenizer(writer, checkpoint, config["vocab_size"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config["num_hidden_layers"])
    for name, (content, kind) in bf16_tensors(checkpoint / "model.safetensors").items():
        theirs = names.get_name(name, try_suffixes=(".weight",))
        if theirs is None:
            raise ValueError(f"{name} has no name in a GGUF file of Qwen3")
        writer.add_tensor(theirs, content, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return unfinished.rename(path)


def _add_numbers(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_name("random")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])


def _add_tokenizer(writer: gguf.GGUFWriter, checkpoint: Path, vocab_size: int) -> None:
    """Adds a byte-level BPE tokenizer; rows without a token get a token that occurs in no text."""
    content = json.loads((checkpoint / "tokenizer.json").read_text())
    tokens = [f"[PAD{token_id}]" for token_id in range(vocab_size)]
    types = [gguf.TokenType.UNUSED] * vocab_size
    for token, token_id in content["model"]["vocab"].items():
        tokens[token_id], types[token_id] = token, gguf.TokenType.NORMAL
    for added in content["added_tokens"]:
        tokens[added["id"]], types[added["id"]] = added["content"], gguf.TokenType.CONTROL
    [end] = json.loads((checkpoint / "generation_config.json").read_text()).values()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(pair) for pair in content["model"]["merges"]])
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


def bf16_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file of bf16 tensors as bytes [rows, 2 * columns].

    Matrices are views of the file.
    """
    mapped = np.memmap(path, np.uint8, "r")
    [header_len] = struct.unpack("<Q", bytes(mapped[:8]))
    header = json.loads(bytes(mapped[8 : 8 + header_len]))
    data = mapped[8 + header_len :]
    found: dict[str, Tensor] = {}
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        if facts["dtype"] != "BF16":
            raise ValueError(f"{name} must be BF16, given {facts['dtype']}")
        begin, end = facts["data_offsets"]
        found[name] = _store_as_gguf(data[begin:end], facts["shape"])
    return found


def _store_as_gguf(content: NDArray[np.uint8], shape: list[int]) -> Tensor:
    if len(shape) > 1:
        return content.reshape(*shape[:-1], 2 * shape[-1]), gguf.GGMLQuantizationType.BF16
    widened = content.view(np.uint16).astype(np.uint32) << np.uint32(16)
    return widened.view(np.uint8), gguf.GGMLQuantizationType.F32


def quantise(
    source: Path, path: Path, kind: str, *, head: str | None = None, num_threads: int = 1
) -> Path:
    """Quantises the file, unless it is done; returns its path.

    llama.cpp's default head of a Q4_0 file is Q6_K; `kind` may name another type for embedding and
    head. Raises RuntimeError if llama.cpp fails.
    """
    if path.exists():
        return path
    import llama_cpp

    unfinished = path.with_suffix(".unfinished")
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype, options.nthread = FILE_TYPES[kind], num_threads
    if head is not None:
        options.output_tensor_type = options.token_embedding_type = TENSOR_TYPES[head]
    status = llama_cpp.llama_model_quantize(str(source).encode(), str(unfinished).encode(), options)
    if status:
        raise RuntimeError(f"llama_model_quantize: {source} to {kind} gave {status}")
    return unfinished.rename(path)
