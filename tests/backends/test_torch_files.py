"""Tests that files of torch.save are read, and that nothing in them is run."""

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.backends.openvino.weights.torch_files import read_state, read_torch_file
from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.checkpoint_edits import load_copy, measure_error
from tests.backends.quantize import load
from tests.backends.torch_archives import Rebuilt, make_tensor, save_arrays, save_state

FILE = "pytorch_model.bin"
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)
WRITTEN_BY_TORCH = Path(__file__).parent / "torch_written" / FILE


def test_a_checkpoint_in_files_of_torch_gives_the_same_logits(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(GOLDEN / "llama", directory)
    tensors = {
        name: values.astype(np.float32)
        for name, (_, values) in load(directory / SINGLE_FILE).items()
    }
    (directory / SINGLE_FILE).unlink()
    names = list(tensors)
    shards = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-2.bin": names[1::2]}
    for shard, own in shards.items():
        save_arrays(directory / shard, {name: tensors[name] for name in own})
    index = {"weight_map": {name: shard for shard, own in shards.items() for name in own}}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert measure_error(load_copy(directory)) < 1e-5


def test_a_file_written_by_torch_is_read() -> None:
    """torch 2.13 wrote it: bf16, f16, f32 and i64 numbers, a part of a storage, a parameter."""
    located = read_torch_file(WRITTEN_BY_TORCH)
    assert {name: (each.dtype, each.shape) for name, each in located.items()} == {
        "bf16": ("BF16", (2, 3)),
        "f16": ("F16", (3,)),
        "part": ("F32", (2, 2)),
        "parameter": ("F32", (2, 2)),
        "integers": ("I64", (1,)),
    }
    directory = WRITTEN_BY_TORCH.parent
    checkpoint = Checkpoint(directory)
    [rows] = checkpoint.rows(Tensor("bf16", (2, 3)))
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5]]
    [rows] = checkpoint.rows(Tensor("part", (2, 2)))
    assert rows.tolist() == [[4, 5], [6, 7]]


def test_safetensors_go_before_files_of_torch(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "llama", tmp_path / "model")
    (tmp_path / "model" / FILE).write_bytes(b"damaged")
    assert "model.embed_tokens.weight" in Checkpoint(tmp_path / "model").names()


class Harm:
    """Unpickled, it would make a directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    assert read_state(pickle.dumps({"a": Harm(harm), "b": 1})) == {"a": None, "b": 1}
    assert not harm.exists()
    pickle.loads(pickle.dumps(Harm(harm)))
    assert harm.exists(), "the pickle would have done harm"


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02.",
        b"\x80\x02}",
        b"\x80\x02]q\x00.",
        b"\x80\x02u.",
        b"\x80\x02(.",
        b"\x80\x02h\x07.",
        b"\x80\x02r\xff\xff\xff\xff.",
        b"\x80\x02K\x01Q.",
        b"\x80\x02}X\xff\xff\xff\xffa",
        b"\x80\x02(K\x01K\x02K\x03o.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.",
        b"\x80\x02ctorch._utils\n_rebuild_parameter\n)R.",
    ],
)
def test_a_damaged_pickle_is_refused(pickled: bytes) -> None:
    with pytest.raises(ValueError, match=r"its pickle|pickle exhausted|expected|not enough data"):
        read_state(pickled)


def replace_strides(strides: tuple[int, ...]) -> Rebuilt:
    tensor = make_tensor(ARRAY, "0")
    return replace(tensor, arguments=(*tensor.arguments[:3], strides, *tensor.arguments[4:]))


def change(path: Path, name: str, content: bytes | None) -> None:
    """Writes the archive anew, with another content of a member, or without it."""
    with zipfile.ZipFile(path) as archive:
        members = {each.filename: archive.read(each) for each in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for member, old in members.items():
            new = content if member == name else old
            if new is not None:
                archive.writestr(member, new)


def compress(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {each.filename: archive.read(each) for each in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)


def encrypt(path: Path) -> None:
    """Sets the flag of encryption of the first member, in the directory of the archive."""
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def save_key(path: Path, key: object) -> None:
    save_state(path, {key: make_tensor(ARRAY, "0")}, {"0": ARRAY.tobytes()})


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "of an older torch": (lambda path: path.write_bytes(b"\x80\x02\x8a\nl\xfc"), "torch 1.6 and"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-40]), "cannot be read"),
    "without numbers": (lambda path: change(path, "archive/data/0", None), "has no numbers"),
    "too few numbers": (lambda path: change(path, "archive/data/0", b"1234"), "is truncated"),
    "without a pickle": (lambda path: change(path, "archive/data.pkl", None), "have a data.pkl"),
    "encrypted": (encrypt, "without compression and encryption"),
    "a key that is no text": (lambda path: save_key(path, ((("a",),),)), "a key that is no text"),
    "fewer strides": (
        lambda path: save_state(path, {"a": replace_strides((1,))}, {"0": ARRAY.tobytes()}),
        "2 dimensions and 1 strides",
    ),
    "a long byteorder": (
        lambda path: change(path, "archive/byteorder", b"little" * 1000),
        "must be little",
    ),
    "big-endian": (lambda path: change(path, "archive/byteorder", b"big"), "must be little"),
    "compressed": (compress, "must be stored without compression"),
    "a list": (lambda path: save_state(path, [1, 2], {}), "has no dictionary"),
    "no tensors": (lambda path: save_state(path, {"state": {"a": 1}}, {}), "found none"),
    "in another order": (
        lambda path: save_state(path, {"a": make_tensor(ARRAY.T, "0")}, {"0": ARRAY.tobytes()}),
        r"order of its shape \[3, 2\], found strides of \[1, 3\]",
    ),
    "behind its storage": (
        lambda path: save_state(path, {"a": make_tensor(ARRAY, "0", 1)}, {"0": ARRAY.tobytes()}),
        "is truncated: it needs 28 bytes",
    ),
    "before its storage": (
        lambda path: save_state(path, {"a": make_tensor(ARRAY, "0", -1)}, {"0": ARRAY.tobytes()}),
        "without a place",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / FILE
    save_arrays(path, {"a": ARRAY})
    assert list(read_torch_file(path)) == ["a"]
    damage, message = DAMAGES[name]
    damage(path)
    with pytest.raises(ModelLoadError, match=message):
        read_torch_file(path)
