"""Writes tiny models in the forms of Kokoro models.

Each token becomes 240 samples, a hundredth of a second, with the value token / 256 * style / speed.
All 256 numbers of a style are equal: the row n of a voice has its loudness plus n / 10000. So the
samples tell the tokens, the voice, and the row of its table. The padding is silence.
"""

import io
import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ops, ov

SAMPLES = 240  # samples of a token
LOUDNESS = {"af_bella": 0.5, "am_echo": 0.25, "ef_dora": 0.75}
_INT64, _INT32, _FLOAT = 7, 6, 1  # ONNX's numbers of types


def make_table(loudness: float, num_rows: int = 510) -> NDArray[np.float32]:
    rows = loudness + np.arange(num_rows, dtype=np.float32) / 10_000
    return np.repeat(rows[:, None, None], 256, axis=2)


def expect_value(token_id: int, *, loudness: float, num_tokens: int, speed: float = 1.0) -> float:
    return token_id / 256 * (loudness + (num_tokens - 1) / 10_000) / speed


def write_voices(directory: Path, voices: Mapping[str, float] = LOUDNESS) -> None:
    directory.mkdir(parents=True)
    for name, loudness in voices.items():
        make_table(loudness).tofile(directory / f"{name}.bin")


def write_config(directory: Path, model_type: str = "style_text_to_speech_2") -> None:
    (directory / "config.json").write_text(json.dumps({"model_type": model_type}))


def write_onnx_form(directory: Path, **options: bool) -> Path:
    """Writes onnx-community's form."""
    write_voices(directory / "voices")
    write_config(directory)
    (directory / "onnx").mkdir()
    (directory / "onnx" / "model.onnx").write_bytes(make_onnx(**options))
    return directory


def write_archive_form(directory: Path) -> Path:
    """Writes kokoro-onnx's form."""
    directory.mkdir()
    (directory / "kokoro-v1.0.onnx").write_bytes(make_onnx(has_old_names=True))
    with zipfile.ZipFile(directory / "voices-v1.0.bin", "w") as archive:
        for name, loudness in LOUDNESS.items():
            content = io.BytesIO()
            np.save(content, make_table(loudness))
            archive.writestr(f"{name}.npy", content.getvalue())
    return directory


def write_ir_form(directory: Path) -> Path:
    write_voices(directory / "voices")
    write_config(directory, "kokoro")
    ov.save_model(_make_graph(), directory / "openvino_model.xml", compress_to_fp16=False)
    return directory


def _make_graph() -> ov.Model:
    tokens = ops.parameter([1, -1], ov.Type.i64, name="input_ids")
    style = ops.parameter([1, 256], ov.Type.f32, name="ref_s")
    speed = ops.parameter([1], ov.Type.f32, name="speed")
    loudness = ops.reduce_mean(style, ops.constant(np.array([1])), False)
    values = ops.multiply(ops.convert(tokens, ov.Type.f32), ops.constant(np.float32(1 / 256)))
    column = ops.unsqueeze(values, ops.constant(np.array([2])))
    shape = ops.constant(np.array([1, 1, SAMPLES]))
    rows = ops.broadcast(column, shape, broadcast_spec="BIDIRECTIONAL")
    flat = ops.reshape(rows, ops.constant(np.array([-1])), False)
    sound = ops.result(ops.divide(ops.multiply(flat, loudness), speed))
    names = {"input_ids": tokens, "ref_s": style, "speed": speed, "waveform": sound}
    for name, node in names.items():
        node.output(0).set_names({name})
    return ov.Model([sound], [tokens, style, speed])


def make_onnx(*, has_old_names: bool = False, has_integer_speed: bool = False) -> bytes:
    """Makes an ONNX file with the same sound. Format: onnx.proto of ONNX 1.12."""
    tokens = "tokens" if has_old_names else "input_ids"
    nodes = [
        _node("Cast", [tokens], "numbers", to=_FLOAT),
        _node("Unsqueeze", ["numbers", "last"], "column"),
        _node("Expand", ["column", "wide"], "rows"),
        _node("Reshape", ["rows", "flat"], "line"),
        _node("ReduceMean", ["style"], "mean"),
        _node("Reshape", ["mean", "flat"], "loudness"),
        _node("Mul", ["line", "loudness"], "loud"),
        _node("Cast", ["speed"], "rate", to=_FLOAT),
        _node("Div", ["loud", "rate"], "quick"),
        _node("Mul", ["quick", "unit"], "waveform"),
    ]
    constants = [
        _integers("last", [2]),
        _integers("wide", [1, 1, SAMPLES]),
        _integers("flat", [-1]),
        _tensor("unit", _FLOAT, 1, struct.pack("<f", 1 / 256)),
    ]
    inputs = [
        _value(tokens, _INT64, [1, "length"]),
        _value("style", _FLOAT, [1, 256]),
        _value("speed", _INT32 if has_integer_speed else _FLOAT, [1]),
    ]
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, b"tiny")
    graph += b"".join(_bytes(5, constant) for constant in constants)
    graph += b"".join(_bytes(11, each) for each in inputs)
    graph += _bytes(12, _value("waveform", _FLOAT, ["samples"]))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 13))


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    content = b""
    while value > 127:
        content += bytes([value & 127 | 128])
        value >>= 7
    return content + bytes([value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _node(operation: str, inputs: Sequence[str], output: str, *, to: int | None = None) -> bytes:
    content = b"".join(_bytes(1, name.encode()) for name in inputs) + _bytes(2, output.encode())
    content += _bytes(4, operation.encode())
    if to is not None:
        content += _bytes(5, _bytes(1, b"to") + _number(3, to) + _number(20, 2))
    return content


def _integers(name: str, values: Sequence[int]) -> bytes:
    return _tensor(name, _INT64, len(values), struct.pack(f"<{len(values)}q", *values))


def _tensor(name: str, dtype: int, length: int, content: bytes) -> bytes:
    return _bytes(8, name.encode()) + _number(2, dtype) + _number(1, length) + _bytes(9, content)


def _value(name: str, dtype: int, shape: Sequence[int | str]) -> bytes:
    sizes = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _bytes(2, size.encode()))
        for size in shape
    )
    tensor = _number(1, dtype) + _bytes(2, sizes)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))
