"""Writes Whisper models as CTranslate2 and whisper.cpp store them, from tensors by transformers'
names.
"""

import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # Any: one of several element types
Arrays = Mapping[str, Array]

_CTRANSLATE2_TYPES = {"float32": 0, "int8": 1, "int16": 2, "float16": 4}
_MODULES = {
    "self_attn_layer_norm": "self_attention/layer_norm",
    "self_attn.out_proj": "self_attention/linear_1",
    "encoder_attn_layer_norm": "attention/layer_norm",
    "encoder_attn.q_proj": "attention/linear_0",
    "encoder_attn.out_proj": "attention/linear_2",
    "final_layer_norm": "ffn/layer_norm",
    "fc1": "ffn/linear_0",
    "fc2": "ffn/linear_1",
}
_JOINED = {
    "self_attn": ("qkv", "self_attention/linear_0"),
    "encoder_attn": ("kv", "attention/linear_1"),
}
_NORM = {"weight": "gamma", "bias": "beta"}


def make_tensors(
    width: int, num_layers: int, vocab_size: int, num_bins: int, seed: int = 0
) -> dict[str, Array]:
    """Makes the tensors of a Whisper model with random numbers that f16 represents."""
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.conv1.weight": (width, num_bins, 3),
        "encoder.conv1.bias": (width,),
        "encoder.conv2.weight": (width, width, 3),
        "encoder.conv2.bias": (width,),
        "encoder.embed_positions.weight": (1500, width),
        "decoder.embed_positions.weight": (48, width),
        "decoder.embed_tokens.weight": (vocab_size, width),
    }
    for side in ("encoder", "decoder"):
        shapes |= _norm_shapes(f"{side}.layer_norm", width)
        for layer in range(num_layers):
            shapes |= _layer_shapes(f"{side}.layers.{layer}", width, has_cross=side == "decoder")
    return {
        f"model.{name}": random.standard_normal(shape).astype(np.float16).astype(np.float32)
        for name, shape in shapes.items()
    }


def _norm_shapes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _layer_shapes(layer: str, width: int, *, has_cross: bool) -> dict[str, tuple[int, ...]]:
    shapes = _norm_shapes(f"{layer}.final_layer_norm", width)
    for attention in ("self_attn", "encoder_attn") if has_cross else ("self_attn",):
        shapes |= _norm_shapes(f"{layer}.{attention}_layer_norm", width)
        for module in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes[f"{layer}.{attention}.{module}.weight"] = (width, width)
            if module != "k_proj":
                shapes[f"{layer}.{attention}.{module}.bias"] = (width,)
    shapes |= {f"{layer}.fc1.weight": (4 * width, width), f"{layer}.fc1.bias": (4 * width,)}
    return shapes | {f"{layer}.fc2.weight": (width, 4 * width), f"{layer}.fc2.bias": (width,)}


def name_variables(tensors: Arrays) -> dict[str, Array]:
    """Returns the tensors as variables of CTranslate2: queries, keys and values are joined."""
    variables: dict[str, Array] = {}
    for name, array in tensors.items():
        side, module, kind = _split(name)
        if match := re.fullmatch(r"layers\.(\d+)\.(\w+)\.([qkv])_proj", module):
            layer, attention, letter = match.groups()
            letters, joined = _JOINED[attention]
            if letter != "v":
                if letter not in letters:
                    variables[f"{side}/layer_{layer}/attention/linear_0/{kind}"] = array
                continue
            parts = [
                tensors.get(f"model.{side}.layers.{layer}.{attention}.{each}_proj.{kind}")
                for each in letters
            ]
            zeros = np.zeros_like(array)
            variables[f"{side}/layer_{layer}/{joined}/{kind}"] = np.concatenate(
                [zeros if part is None else part for part in parts]
            )
        elif match := re.fullmatch(r"layers\.(\d+)\.(.+)", module):
            theirs = _MODULES[match[2]]
            ending = _NORM[kind] if theirs.endswith("norm") else kind
            variables[f"{side}/layer_{match[1]}/{theirs}/{ending}"] = array
        else:
            variables[_name_other(side, module, kind)] = array
    return variables


def _split(name: str) -> tuple[str, str, str]:
    _, side, rest = name.split(".", 2)
    module, _, kind = rest.rpartition(".")
    return side, module, kind


def _name_other(side: str, module: str, kind: str) -> str:
    if module == "layer_norm":
        return f"{side}/layer_norm/{_NORM[kind]}"
    names = {"embed_positions": "position_encodings/encodings", "embed_tokens": "embeddings/weight"}
    return f"{side}/{names.get(module, f'{module}/{kind}')}"


def round_to_int8(variables: Arrays) -> dict[str, Array]:
    """Returns matrices as int8 with a scale for each row, as CTranslate2 rounds them."""
    rounded: dict[str, Array] = {}
    for name, array in variables.items():
        if array.ndim < 2 or not name.endswith("weight"):
            rounded[name] = array
            continue
        scales = 127 / np.abs(array.reshape(len(array), -1)).max(axis=1)
        shaped = scales.reshape(-1, *[1] * (array.ndim - 1))
        rounded[name] = np.rint(array * shaped).astype(np.int8)
        rounded[f"{name}_scale"] = scales.astype(np.float32)
    return rounded


def write_ctranslate2(
    path: Path, variables: Arrays, num_heads: int = 0, version: int = 6, name: str = "WhisperSpec"
) -> None:
    """Writes model.bin with variables in the types of their arrays."""
    flags = {"decoder/scale_embeddings": np.array(0, np.int8)}
    if num_heads:
        flags |= {
            f"{side}/num_heads": np.array(num_heads, np.int16) for side in ("encoder", "decoder")
        }
    every = {**flags, **variables}
    parts = [struct.pack("<I", version), _pack(name), struct.pack("<II", 3, len(every))]
    for each, array in every.items():
        number = _CTRANSLATE2_TYPES[array.dtype.name]
        parts += [_pack(each), struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)]
        parts += [struct.pack("<BI", number, array.nbytes), array.tobytes()]
    parts += [struct.pack("<I", 1), _pack("decoder/projection/weight")]
    path.write_bytes(b"".join([*parts, _pack("decoder/embeddings/weight")]))


def _pack(text: str) -> bytes:
    encoded = text.encode() + b"\0"
    return struct.pack("<H", len(encoded)) + encoded


_OPENAI = [
    ("model.", ""),
    (".layers.", ".blocks."),
    ("embed_positions.weight", "positional_embedding"),
    ("embed_tokens", "token_embedding"),
    ("encoder_attn_layer_norm", "cross_attn_ln"),
    ("self_attn_layer_norm", "attn_ln"),
    ("final_layer_norm", "mlp_ln"),
    ("fc1", "mlp.0"),
    ("fc2", "mlp.2"),
    ("encoder_attn.", "cross_attn."),
    ("self_attn.", "attn."),
    ("encoder.layer_norm", "encoder.ln_post"),
    ("decoder.layer_norm", "decoder.ln"),
    ("q_proj", "query"),
    ("k_proj", "key"),
    ("v_proj", "value"),
    ("out_proj", "out"),
]


def name_ggml(name: str) -> str:
    """Returns OpenAI's name of a tensor."""
    for theirs, openai in _OPENAI:
        name = name.replace(theirs, openai)
    return name


def write_ggml(
    path: Path,
    sizes: Sequence[int],
    tokens: Sequence[bytes],
    tensors: Arrays,
    blocks: Mapping[str, tuple[int, bytes]] | None = None,
) -> None:
    """Writes a GGML file; `blocks` has the block type and the bytes of some tensors."""
    num_bins, num_frequencies = sizes[9], 5
    parts = [struct.pack("<I11i", 0x67676D6C, *sizes)]
    parts += [struct.pack("<2i", num_bins, num_frequencies), bytes(4 * num_bins * num_frequencies)]
    parts.append(struct.pack("<i", len(tokens)))
    parts += [struct.pack("<I", len(token)) + token for token in tokens]
    for name, array in tensors.items():
        shape = (*array.shape, 1) if "conv" in name and array.ndim == 1 else array.shape
        is_float = array.ndim == 1 or "positions" in name
        plain = (0, array.tobytes()) if is_float else (1, array.astype("<f2").tobytes())
        number, values = (blocks or {}).get(name, plain)
        encoded = name_ggml(name).encode()
        head = struct.pack(f"<3i{len(shape)}i", len(shape), len(encoded), number, *shape[::-1])
        parts += [head, encoded, values]
    path.write_bytes(b"".join(parts))
