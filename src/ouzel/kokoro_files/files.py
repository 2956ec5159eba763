"""Finds the graph and the voices of a Kokoro model in the forms in which it is published.

- onnx-community: `onnx/model*.onnx`, `voices/NAME.bin`, `config.json`, `tokenizer.json`
- kokoro-onnx: `kokoro-*.onnx`, and `voices-*.bin`, an archive of NumPy arrays
- OpenVINO: `openvino_model.xml`, `voices/NAME.bin`
"""

from dataclasses import dataclass
from pathlib import Path

from ouzel.checkpoint.model_files import read_json_object
from ouzel.errors import ModelLoadError

MODEL_TYPES = frozenset({"kokoro", "style_text_to_speech_2"})  # the second: transformers.js
IR_FILE = "openvino_model.xml"
ONNX_SUFFIX = ".onnx"
VOICE_SUFFIXES = (".bin", ".npy")
_OWN_KEY = "istftnet"  # config.json of hexgrad/Kokoro-82M names no type
_ARCHIVE_SUFFIXES = (".bin", ".npz")
_ARCHIVE_START = b"PK"  # an archive of NumPy arrays is a ZIP file
# Parts of the names of graphs with other weights than f32, the better ones first.
_SMALLER = ("fp16", "f16", "q8f16", "uint8", "int8", "quantized", "q4", "bnb4")


@dataclass(frozen=True, slots=True)
class KokoroFiles:
    """The files of a model. It has either files of single voices or one archive of all voices."""

    root: Path  # the directory with config.json
    graph: Path  # an ONNX file, or the XML file of an IR
    voices: tuple[Path, ...] = ()  # NAME.bin (float32) or NAME.npy
    archive: Path | None = None

    @property
    def is_ir(self) -> bool:
        return self.graph.name == IR_FILE

    @property
    def graph_parts(self) -> tuple[Path, ...]:
        """Returns the files beside the graph that hold its weights."""
        name = f"{self.graph.name}_data"
        found = self.graph.with_suffix(".bin") if self.is_ir else self.graph.with_name(name)
        return (found,) if found.is_file() else ()

    @property
    def all(self) -> tuple[Path, ...]:
        own = [self.root / name for name in ("config.json", "tokenizer.json")]
        archive = () if self.archive is None else (self.archive,)
        small = [path for path in own if path.is_file()]
        return (self.graph, *self.graph_parts, *self.voices, *archive, *small)


def find_kokoro(path: Path) -> KokoroFiles | None:
    """Returns the files of a model directory, or of an ONNX file with its voices nearby.

    Returns None for other models. Raises ModelLoadError for the weights of PyTorch, and for a
    broken config.json.
    """
    root = path if path.is_dir() else path.parent
    if not path.is_dir():
        if path.suffix != ONNX_SUFFIX:
            return None
        root = root.parent if root.name == "onnx" else root
    if not _may_be_kokoro(root):
        return None
    graph = _find_graph(root) if path.is_dir() else path
    voices = _find_voices(root / "voices")
    archive = None if voices else _find_archive(root)
    if graph is not None and (voices or archive):
        return KokoroFiles(root, graph, voices, archive)
    if _is_torch_kokoro(root):
        raise ModelLoadError(
            f"{root} holds Kokoro's weights for PyTorch, which Ouzel does not read; it serves the "
            "ONNX form, such as onnx-community/Kokoro-82M-v1.0-ONNX, and the OpenVINO form, such "
            "as OpenVINO/Kokoro-82M-fp16-ov"
        )
    return None


def _is_torch_kokoro(root: Path) -> bool:
    """Tells whether a directory has Kokoro's own config.json, and no graph beside it."""
    return _OWN_KEY in read_json_object(root / "config.json") and _find_graph(root) is None


def is_declared(root: Path) -> bool:
    """Tells whether config.json is Kokoro's own, or names its type."""
    config = read_json_object(root / "config.json")
    return _OWN_KEY in config or config.get("model_type") in MODEL_TYPES


def order_graphs(paths: list[Path]) -> list[Path]:
    """Orders ONNX files by their weights: f32 first, then f16, then integers."""

    def rank(path: Path) -> tuple[int, str]:
        name = path.stem.lower()
        ranks = [index for index, part in enumerate(_SMALLER) if part in name]
        return (max(ranks, default=-1), name)

    return sorted(paths, key=rank)


def _may_be_kokoro(root: Path) -> bool:
    return read_json_object(root / "config.json").get("model_type") in (None, *MODEL_TYPES)


def _find_graph(root: Path) -> Path | None:
    if (root / IR_FILE).is_file():
        return root / IR_FILE
    paths = [*root.glob(f"onnx/*{ONNX_SUFFIX}"), *root.glob(f"*{ONNX_SUFFIX}")]
    return next(iter(order_graphs([path for path in paths if path.is_file()])), None)


def _find_voices(directory: Path) -> tuple[Path, ...]:
    if not directory.is_dir():
        return ()
    paths = sorted(directory.iterdir())
    # a link may lead nowhere, after a download that broke off
    return tuple(path for path in paths if path.suffix in VOICE_SUFFIXES and path.is_file())


def _find_archive(root: Path) -> Path | None:
    paths = [path for path in sorted(root.glob("voices*")) if path.suffix in _ARCHIVE_SUFFIXES]
    return next((path for path in paths if path.is_file() and _is_archive(path)), None)


def _is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ARCHIVE_START)) == _ARCHIVE_START
