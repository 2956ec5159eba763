"""The catalogue of short names: its entries, its sizes, and its errors."""

import json
import math
import struct
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, get_args  # JSON

import msgspec
import pytest

from benchmarks.make_checkpoint import SHAPES, hf_config, tensor_shapes
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from ouzel.model_store.catalogue.entry import Shape, Use
from ouzel.model_store.catalogue.fitting import (
    Fit,
    MemoryRoom,
    check_disk,
    check_memory,
    judge_fit,
)
from ouzel.model_store.catalogue.reader import (
    MAX_CATALOGUE_BYTES,
    parse_catalogue,
    read_catalogue,
)
from ouzel.model_store.catalogue.remote_file import fetch_file
from ouzel.model_store.catalogue.sizes import (
    WIDTHS,
    Width,
    compute_memory_bytes,
    compute_weight_bytes,
    count_parameters,
)
from ouzel.model_store.catalogue.whereabouts import find_entry, resolve_model
from tests.http_servers import file_server, http_server

ENTRY: dict[str, Any] = {
    "name": "tiny:1m",
    "uses": ["chat"],
    "repository": "owner/model",
    "licence": "MIT",
    "parameters": 1_000_000,
    "context": 64,
    "shape": {
        "hidden": 64,
        "layers": 2,
        "feed_forward": 128,
        "heads": 4,
        "kv_heads": 2,
        "head_size": 16,
        "vocabulary": 512,
    },
}
GIB = 2**30
HUGE = MemoryRoom(2**50, 2**50)


def encode(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"models": entries}).encode()


@pytest.mark.parametrize("entry", read_catalogue().values(), ids=read_catalogue())
def test_the_shape_of_a_bundled_entry_gives_the_published_number_of_parameters(
    entry: Any,
) -> None:
    assert count_parameters(entry.shape) == pytest.approx(entry.parameters, rel=0.01)


def test_the_bundled_catalogue_has_models_for_every_use_and_names_their_licences() -> None:
    entries = read_catalogue().values()
    assert {use for entry in entries for use in entry.uses} == {*get_args(Use)}
    assert all(entry.licence for entry in entries)


@pytest.mark.parametrize("width", WIDTHS)
def test_sizes_agree_with_inspect(width: Width, tmp_path: Path) -> None:
    """Compares the formula with a checkpoint that has headers, but no values."""
    shape = SHAPES["qwen3-0.6b"]
    (tmp_path / "config.json").write_text(json.dumps(hf_config(shape)))
    header, end = {}, 0
    for name, dimensions in tensor_shapes(shape):
        begin, end = end, end + 2 * math.prod(dimensions)
        header[name] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.truncate(8 + len(encoded) + end)  # the values take no place on the disk
    model = ModelConfig(model=str(tmp_path), weights=width, cache_dir=str(tmp_path / "cache"))
    found = inspect_model(model, EngineConfig(kv_cache_gib=0.1))
    entry = read_catalogue()["qwen3:0.6b"]
    assert compute_weight_bytes(entry.shape, width) == pytest.approx(found.weight_bytes, rel=0.02)
    assert entry.parameters == found.num_parameters


def test_quantised_experts_keep_their_bits() -> None:
    shape = read_catalogue()["gpt-oss:20b"].shape
    plain = msgspec.structs.replace(shape, expert_bits=None)
    assert compute_weight_bytes(shape, "bf16") < compute_weight_bytes(plain, "bf16") / 2
    assert compute_weight_bytes(shape, "int4") == compute_weight_bytes(plain, "int4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Tiny 1M"}, "Tiny 1M: name: Expected `str` matching regex"),
        ({"uses": ["dance"]}, "tiny:1m: uses[0]: Invalid enum value 'dance'"),
        ({"uses": []}, "tiny:1m: uses: Expected `array` of length >= 1"),
        ({"parameters": 0}, "tiny:1m: parameters: Expected `int` >= 1"),
        ({"licence": None}, "tiny:1m: licence: Expected `str`, got `null`"),
        ({"repository": "model"}, "tiny:1m: repository: Expected `str` matching regex"),
        ({"repository": ""}, "tiny:1m: repository: is required for an entry without packages"),
        ({"revision": "a/../../b"}, "tiny:1m: revision: Expected `str` matching regex"),
        ({"format": "gguf"}, "tiny:1m: file: is required for the format gguf"),
        ({"file": "Q8_0"}, "tiny:1m: file: is for the format gguf, given 'Q8_0'"),
        ({"colour": "red"}, "tiny:1m: Object contains unknown field `colour`"),
        ({"shape": ENTRY["shape"] | {"layers": "2"}}, "tiny:1m: shape.layers: Expected `int`"),
    ],
)
def test_a_fault_is_told_with_its_entry_and_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelLoadError) as raised:
        parse_catalogue(encode(ENTRY | {"name": "good"}, ENTRY | change), "--catalogue x")
    assert str(raised.value).startswith(f"--catalogue x: {message}")


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../b", ".hidden", ""])
def test_files_of_packages_stay_within_the_directory_of_the_model(name: str) -> None:
    file = {"name": name, "parts": ["p/q"], "size_bytes": 1, "sha256": "0" * 64}
    packages = {"requirements": ["p==1"], "download_bytes": 1, "files": [file]}
    with pytest.raises(ModelLoadError, match=r"tiny:1m: packages\.files\[0\]\.name: Expected"):
        parse_catalogue(encode(ENTRY | {"packages": packages}), "x")


@pytest.mark.parametrize("requirement", ["p", "p>=1", "--index-url=x", "p==1 --pre", "-r==1"])
def test_packages_have_one_version_and_no_options(requirement: str) -> None:
    file = {"name": "a", "parts": ["p/q"], "size_bytes": 1, "sha256": "0" * 64}
    packages = {"requirements": [requirement], "download_bytes": 1, "files": [file]}
    with pytest.raises(ModelLoadError, match=r"tiny:1m: packages\.requirements\[0\]: Expected"):
        parse_catalogue(encode(ENTRY | {"packages": packages}), "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"models: []", "x: must be JSON: JSON is malformed"),
        (b'{"models": [{"name": 1, "a": ' + b"[" * 100_000, "x: entry 0: name: Expected `str`"),
        (b"{}", "x: Object missing required field `models`"),
        (encode(ENTRY, ENTRY), "x: tiny:1m: name: two entries have this name"),
    ],
    ids=["YAML", "deep", "empty", "twice"],
)
def test_a_file_that_is_no_catalogue_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ModelLoadError) as raised:
        parse_catalogue(content, "x")
    assert str(raised.value).startswith(message)


def test_a_file_and_a_url_replace_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_bytes(encode(ENTRY))
    assert [*read_catalogue(str(path))] == ["tiny:1m"]
    with file_server(tmp_path) as port:
        assert [*read_catalogue(f"http://127.0.0.1:{port}/names.json")] == ["tiny:1m"]
        missing = f"http://127.0.0.1:{port}/none.json"
        with pytest.raises(ModelLoadError, match=r"none\.json: answered with status 404"):
            read_catalogue(missing)
        secret = f"http://user:secret@127.0.0.1:{port}/none.json"
        with pytest.raises(ModelLoadError, match=r"http://…@127\.0\.0\.1:\d+/none"):
            read_catalogue(secret)
    with pytest.raises(ModelLoadError, match="cannot be fetched"):
        read_catalogue(missing)
    with pytest.raises(ModelLoadError, match="absent: cannot be read: No such file"):
        read_catalogue(str(tmp_path / "absent"))


def test_a_source_without_end_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="/dev/zero: must be at most 4 MiB"):
        read_catalogue("/dev/zero")

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" " * 2**16)
            except ConnectionError:
                return

        # the base class determines the name `format`
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http_server(Endless) as port:
        url = f"http://127.0.0.1:{port}/"
        with pytest.raises(ModelLoadError, match="must be at most 4 MiB"):
            fetch_file(url, MAX_CATALOGUE_BYTES)
        with pytest.raises(ModelLoadError, match=r"did not arrive within 0 s|cannot be fetched"):
            fetch_file(url, 2**40, timeout_s=0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qwen3:0.6", "did you mean qwen3:0.6b?"),
        ("qwen3", "qwen3: name a size: qwen3:0.6b, "),
        ("gemma3:900b", "; this family has gemma3:270m, "),
        ("xyzzy", "the catalogue has no such short name; ouzel models lists all"),
    ],
)
def test_an_unknown_name_gets_suggestions(name: str, message: str) -> None:
    with pytest.raises(ModelLoadError) as raised:
        find_entry(name, read_catalogue())
    assert message in str(raised.value)


def test_names_are_found_in_any_case() -> None:
    assert find_entry("QWEN3:0.6B", read_catalogue()).repository == "Qwen/Qwen3-0.6B"


def test_paths_and_repositories_keep_their_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_model("qwen3:0.6b").kind == "catalogue"
    assert resolve_model("Qwen/Qwen3-0.6B").kind == "hub"
    assert resolve_model("Qwen/Qwen3-0.6B").repository == "Qwen/Qwen3-0.6B"
    (tmp_path / "qwen3:0.6b").mkdir()
    assert resolve_model("qwen3:0.6b").on_disk == Path("qwen3:0.6b")
    assert resolve_model("qwen3:0.6b").kind == "path"


def test_a_model_beyond_the_memory_is_refused_with_figures_and_advice() -> None:
    entry = read_catalogue()["qwen3:32b"]
    check_memory(entry, "int8", HUGE)
    with pytest.raises(ModelLoadError) as raised:
        check_memory(entry, "auto", MemoryRoom(24 * GIB, 20 * GIB))
    assert "qwen3:32b needs 33.3 GiB of memory with --weights auto" in str(raised.value)
    assert "this machine has 24 GiB; --weights int4 fits; --no-check-fit" in str(raised.value)
    check_memory(entry, "int4,head=int4", MemoryRoom(24 * GIB, 20 * GIB))
    with pytest.raises(ModelLoadError, match=r"has 8 GiB; choose a smaller model: ouzel models"):
        check_memory(entry, "auto", MemoryRoom(8 * GIB, 8 * GIB))


def test_memory_in_use_may_be_freed() -> None:
    needed = compute_memory_bytes(read_catalogue()["qwen3:4b"], "int8")
    assert judge_fit(needed, MemoryRoom(needed, needed)) is Fit.YES
    assert judge_fit(needed, MemoryRoom(needed, needed - 1)) is Fit.IF_FREED
    assert judge_fit(needed, MemoryRoom(needed - 1, needed - 1)) is Fit.NO


def test_a_model_beyond_the_disk_is_refused_with_figures(tmp_path: Path) -> None:
    entry = read_catalogue()["smollm2:135m"]
    check_disk(entry, "auto", download=tmp_path / "hub", stored=tmp_path / "own")
    vast = Shape(
        hidden=2**20,
        layers=1000,
        feed_forward=2**20,
        heads=1,
        kv_heads=1,
        head_size=1,
        vocabulary=1,
    )
    big = msgspec.structs.replace(entry, name="vast", shape=vast)
    with pytest.raises(ModelLoadError, match=r"vast needs 3\.\d+e\+06 GiB|vast needs \d+ GiB"):
        check_disk(big, "auto", download=tmp_path / "hub", stored=tmp_path / "own")
