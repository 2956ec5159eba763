"""Tests headers of GGUF files: broken and hostile ones are refused in one sentence."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ouzel.errors import ModelLoadError
from ouzel.gguf.file import read_gguf
from ouzel.gguf.files import find_gguf
from tests.gguf.writer import Raw, RawTensor, Value, encode_string, make_gguf

F32, Q8_0 = 0, 8
METADATA: dict[str, Value | Raw] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.rope.freq_base": 1e-6,
}
VECTOR = RawTensor("output_norm.weight", (4,), F32, np.arange(4, dtype="<f4").tobytes())
MATRIX = RawTensor("output.weight", (2, 32), Q8_0, bytes(2 * 34))

Written = Callable[[bytes], list[Path]]


@pytest.fixture
def write_file(tmp_path: Path) -> Written:
    def write(content: bytes) -> list[Path]:
        path = tmp_path / "model.gguf"
        path.write_bytes(content)
        return [path]

    return write


def test_metadata_and_tensors_are_read(write_file: Written) -> None:
    gguf = read_gguf(
        write_file(make_gguf({**METADATA, "tokens": ["a", "é"], "types": [1, 3]}, [VECTOR, MATRIX]))
    )
    assert gguf.metadata.text("general.architecture") == "llama"
    assert gguf.metadata.number("llama.rope.freq_base") == 1e-6
    assert (gguf.metadata.texts("tokens"), gguf.metadata.integers("types", 2)) == (
        ["a", "é"],
        [1, 3],
    )
    assert gguf.floats("output_norm.weight") == [0, 1, 2, 3]
    matrix = gguf.tensors["output.weight"]
    assert (matrix.shape, matrix.block_type.name, matrix.row_bytes) == ((2, 32), "Q8_0", 34)


def make_entry(key: str, kind: int, content: bytes) -> bytes:
    return make_gguf({key: Raw(struct.pack("<I", kind) + content)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GGUF", "truncated: 4 bytes"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"GGML" + bytes(60), "does not begin with GGUF"),
        (make_gguf(METADATA, version=1), "version 1 is not supported"),
        (make_gguf(METADATA, version=3 << 24), "little-endian"),
        (make_gguf(METADATA, counts=(2**60, 3)), "<= 262144 tensors, found 1152921504606846976"),
        (make_gguf(METADATA, counts=(0, 2**60)), "<= 16384 metadata entries"),
        (make_gguf(METADATA, counts=(0, 50)), "a name must have 1 to|truncated or broken"),
        (make_gguf(METADATA)[:40], "truncated or broken: its header needs"),
        (make_entry("key", 8, struct.pack("<Q", 2**63)), "needs 9223372036854775808 bytes"),
        (make_entry("key", 8, struct.pack("<Q", 1) + b"\xff"), "is not UTF-8"),
        (make_entry("key", 99, b""), "unknown type 99"),
        (make_entry("key", 9, struct.pack("<IQ", 8, 2**40)), "<= 4194304 elements in an array"),
        (make_entry("key", 9, struct.pack("<IQ", 12, 2**22)), "needs 33554432 bytes"),
        (make_entry("key", 9, struct.pack("<IQ", 9, 1)), "arrays of arrays are not supported"),
        (make_entry("k" * 2000, 5, struct.pack("<i", 1)), "a name must have 1 to 1024 characters"),
        (
            make_gguf(
                METADATA
                | {
                    "a": Raw(
                        struct.pack("<Ii", 5, 1) + encode_string("a") + struct.pack("<Ii", 5, 2)
                    )
                },
                counts=(0, 5),
            ),
            'the metadata has the key "a" twice',
        ),
        (
            make_gguf(METADATA | {"general.alignment": 12}),
            "general.alignment must be a power of two <= 65536, found 12",
        ),
        (make_gguf(METADATA, [RawTensor("t", (), F32, b"")]), "1 to 4 dimensions, found 0"),
        (make_gguf(METADATA, [RawTensor("t", (1,) * 5, F32, b"")]), "1 to 4 dimensions, found 5"),
        (make_gguf(METADATA, [RawTensor("t", (4,), 77, b"")]), "unknown block type 77"),
        (
            make_gguf(METADATA, [RawTensor("t", (2, 33), Q8_0, b"")]),
            "must consist of whole blocks of Q8_0",
        ),
        (
            make_gguf(METADATA, [RawTensor("t", (0, 32), Q8_0, b"")]),
            "must consist of whole blocks of Q8_0",
        ),
        (
            make_gguf(METADATA, [RawTensor("t", (2**40, 2**20), F32, b"")]),
            "is truncated: it ends at byte",
        ),
        (
            make_gguf(METADATA, [RawTensor("t", (4,), F32, bytes(16), offset=32)]),
            "must begin at byte 0",
        ),
        (make_gguf(METADATA, [VECTOR, VECTOR]), "is in the file twice"),
        (make_gguf(METADATA, [VECTOR])[:-20], "is truncated: it ends at byte"),
        (make_gguf(METADATA | {"split.count": 2}, [VECTOR]), "split.count must be 1"),
        (
            make_gguf(METADATA | {"split.tensors.count": 3}, [VECTOR]),
            "split.tensors.count must be 1",
        ),
    ],
)
def test_faults_are_told_in_a_sentence(write_file: Written, content: bytes, message: str) -> None:
    with pytest.raises(ModelLoadError, match=message) as refused:
        read_gguf(write_file(content))
    assert "\n" not in str(refused.value)


def test_every_cut_of_a_file_is_refused(write_file: Written) -> None:
    whole = make_gguf(METADATA, [VECTOR, MATRIX])
    for length in range(len(whole) - 32):  # the last bytes are padding
        with pytest.raises(ModelLoadError):
            read_gguf(write_file(whole[:length]))


def test_a_split_model_is_found_by_any_of_its_files(tmp_path: Path) -> None:
    for number, tensor in ((1, VECTOR), (2, MATRIX)):
        own = METADATA if number == 1 else {}
        content = make_gguf(
            {**own, "split.no": number - 1, "split.count": 2, "split.tensors.count": 2}, [tensor]
        )
        (tmp_path / f"big-{number:05}-of-00002.gguf").write_bytes(content)
    (tmp_path / "mmproj-big.gguf").write_bytes(b"the part that reads images")
    for path in (tmp_path, tmp_path / "big-00002-of-00002.gguf"):
        assert read_gguf(find_gguf(path)).tensors.keys() == {"output_norm.weight", "output.weight"}
    (tmp_path / "big-00001-of-00002.gguf").unlink()
    with pytest.raises(
        ModelLoadError, match=r"lacks big-00001-of-00002\.gguf, which belong to big-00002"
    ):
        find_gguf(tmp_path)


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / f"big-{number:05}-of-00002.gguf" for number in (1, 2)]
    for path in paths:
        path.write_bytes(make_gguf({"split.count": 2}, [VECTOR]))
    with pytest.raises(
        ModelLoadError, match=r"tensor output_norm\.weight is in another file of the model, too"
    ):
        read_gguf(paths)


def test_of_several_models_in_a_directory_one_must_be_named(tmp_path: Path) -> None:
    for name in ("small-Q4_0", "small-Q8_0"):
        (tmp_path / f"{name}.gguf").write_bytes(make_gguf(METADATA))
    with pytest.raises(
        ModelLoadError, match="has 2 GGUF models: small-Q4_0, small-Q8_0; give the file of one"
    ):
        find_gguf(tmp_path)
