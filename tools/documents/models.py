"""Writes docs/reference/models.md from the code and its golden checkpoints.

Run it with `uv run python -m tools.documents.models`.
"""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ouzel.backends.openvino import hearing, models, vision
from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.ir.image_models import IMAGE_FAMILIES
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.served_types import list_types
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config.weights import read_weights
from ouzel.gguf.architectures import ARCHITECTURES
from ouzel.gguf.projectors import PROJECTORS
from ouzel.gguf.projectors.kind import ANY
from ouzel.parsers.registry import FAMILIES

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "reference" / "models.md"
GOLDEN = ROOT / "tests" / "backends" / "golden"
GOLDEN_VISION = ROOT / "tests" / "backends" / "golden_vision"
GOLDEN_SPEECH = ROOT / "tests" / "backends" / "golden_speech"
GOLDEN_HEARING = ROOT / "tests" / "backends" / "golden_hearing"
COMMAND = "uv run python -m tools.documents.models"

_INTRODUCTION = """\
# Models

Ouzel serves the families and formats on this page. To check one model, ask for its parts, its size
in memory and on disk, and the context that fits, without loading it:

```sh
ouzel inspect MODEL
```

The `model_type` in `config.json` names the family of a checkpoint. If a checkpoint has several
modes (`text_config`), Ouzel serves its language model. It also serves the vision encoder, if the
family [reads pictures](#families-that-read-pictures), and the audio encoder, if the family
[hears](#families-that-hear-in-chats). Ouzel refuses a checkpoint with a missing or unknown tensor,
a tensor of another shape, an unknown quantisation or an unknown variant of rotary positions. The
message names the fault.

Generated from the code by `{command}`; a test compares both.

## Families

The tests compare each family with `transformers` in float32. A tiny random checkpoint of each
variant (`tests/backends/golden/`) must give the same logits and greedy tokens, in all chunks of
prompts and all batches of sequences. Random weights show that a graph computes the right formula.
They do not show how well a trained checkpoint answers.

| `model_type` | description | parts beside attention and feed-forward layers | checkpoints |
|---|---|---|---|
"""

_VISION = """
## Families that read pictures

Ouzel serves the vision encoders of these families too: in f32 with `--weights f32`, else in bf16.
The tests compare each encoder with `transformers` in float32, with one, two and four pictures
(`tests/backends/golden_vision/`). They also compare whole chats with picture files
(`tests/backends/golden_seeing.json`). For other checkpoints with several modes Ouzel serves the
language model alone.

| `model_type` | description |
|---|---|
"""

_IR = """
OpenVINO IR directories with a vision encoder come from
`optimum-cli export openvino --task image-text-to-text`. Ouzel serves the directories of {families},
with the exported weights.
"""

_HEARING = """
## Families that hear in chats

Ouzel serves the audio encoders of these families too ([how](../how-to/send-sounds.md)): in f32 with
`--weights f32`, else in bf16. The tests compare each encoder with `transformers` in float32, with
one, two and three sounds (`tests/backends/golden_hearing/`).

| `model_type` | description |
|---|---|
"""

_MMPROJ = """
## mmproj files

A GGUF model sees with the mmproj file of its vision encoder
([how to serve it](../how-to/serve-gguf.md#pictures)). The tests compare files that llama.cpp's
converters made of the golden checkpoints with `transformers` (`tests/gguf/golden_seeing/`). The
audio encoder of a file is left out.

| `clip.projector_type` | `general.architecture` of the model | served as |
|---|---|---|
"""

_FORMATS = """
## Quantised checkpoints

`quant_method` in `config.json` names the format, and the files say which matrices are packed.

| option | effect |
|---|---|
| `--weights auto` (default) | keeps formats that the processor computes with, recompresses others |
| `--weights int8`, `int4` | do so for matrices stored in no more bits, and round the others |
| `--weights int8`, `int4` with `--recompress` | round all matrices |

The log names the treatment. Without Ouzel's own kernels, integers in groups of fewer than 32
columns are not kept: with `auto` they become int8 in groups of 64, which runs faster. Ouzel does
not quantise activations for a checkpoint with quantised activations.

| `quant_method` | variants | treatment |
|---|---|---|
| `gptq` | 4, 8 bits, `gptq`, `gptq_v2`, groups, rows, `dynamic` | kept; act-order recompressed |
| `awq` | 4 bits, `gemm` | kept |
| `compressed-tensors` | `pack-quantized` in 4 and 8 bits, `int-quantized` | kept |
| `compressed-tensors` | `nvfp4-pack-quantized`, `mxfp4-pack-quantized` | kept |
| `compressed-tensors` | `float-quantized`; columns whose groups are scattered | compressed again |
| `fp8` | blocks, rows or one scale, as floats or powers of two | compressed again |
| `mxfp4` | experts | kept; without own kernels from 129 experts on as int8, as exact |
| `bitsandbytes` | nf4 whose blocks do not cross rows, int8 | kept |
| `bitsandbytes` | fp4, other nf4 | compressed again |

The tests compare each format with the results of the program that made the format
(`tests/backends/quantized/`).
"""

_CHATS = """
## Chat formats

The model's chat template determines how Ouzel reads tool calls and reasoning, not its `model_type`.
The first format in this table whose marks are in the template counts. `--tool-parser` and
`--reasoning-parser` choose another one:

| names | tool calls | reasoning |
|---|---|---|
"""

# have the same model_type in the table of architectures as models that see
_TEXT_ONLY = ("qwen3next", "exaone", "internlm2")
# prefix of the names of a layer's states in the graph -> name of such layers in the document
_PARTS = {"delta": "gated delta net", "conv": "short convolution", "ssm": "Mamba"}


def models_document() -> str:
    text = _INTRODUCTION.format(command=COMMAND)
    checkpoints = golden_checkpoints()
    for model_type in models.supported_model_types():
        directories = checkpoints.get(model_type, [])
        cells = [
            f"`{model_type}`",
            description(model_type),
            ", ".join(list_parts(directories)) or "–",
        ]
        checkpoint_names = dict.fromkeys(f"`{path.name}`" for path in directories)
        text += f"| {' | '.join([*cells, ', '.join(checkpoint_names)])} |\n"
    text += _VISION
    for model_type in vision.vision_model_types():
        text += f"| `{model_type}` | {description(model_type, vision)} |\n"
    text += _IR.format(families=", ".join(f"`{model_type}`" for model_type in IMAGE_FAMILIES))
    text += _HEARING
    for model_type in list_types("hearing"):
        text += f"| `{model_type}` | {description(model_type, hearing)} |\n"
    text += _MMPROJ + "".join(list_projector_rows()) + _FORMATS + _CHATS
    for family in FAMILIES:
        names = ", ".join(f"`{name}`" for name in family.names)
        text += (
            f"| {names} | {'yes' if family.calls else '–'} | {'yes' if family.reasoning else '–'} "
            "|\n"
        )
    return text


def list_projector_rows() -> Iterator[str]:
    """Yields a row for each kind of mmproj files."""
    names: dict[str, list[str]] = {}
    for name, architecture in ARCHITECTURES.items():
        if name in _TEXT_ONLY:
            continue
        names.setdefault(architecture.model_type, []).append(f"`{name}`")
    names["glm_ocr_text"] = names["glm4"]
    for kind, projector in PROJECTORS.items():
        texts = ["any" if each == ANY else ", ".join(names[each]) for each in projector.pairs]
        types = [f"`{pair.model_type}`" for pair in projector.pairs.values()]
        types += [f"`{each}`" for each in projector.more_model_types]
        yield f"| `{kind}` | {', '.join(texts)} | {', '.join(dict.fromkeys(types))} |\n"


def golden_checkpoints() -> dict[str, list[Path]]:
    """Returns the directories of each model_type."""
    found: dict[str, list[Path]] = {}
    for folder in (GOLDEN, GOLDEN_VISION, GOLDEN_HEARING, GOLDEN_SPEECH):
        for path in sorted(folder.glob("*/config.json")):
            model_type = read_hf_config(path.parent).text_model().model_type
            found.setdefault(model_type, []).append(path.parent)
    return found


def description(model_type: str, families: ModuleType = models) -> str:
    """Returns the first sentence of the family's file."""
    document = importlib.import_module(f"{families.__name__}.{model_type}").__doc__ or ""
    return " ".join(document.partition("\n\n")[0].split()).removesuffix(".").replace("|", "\\|")


def list_parts(directories: list[Path]) -> list[str]:
    """Returns the parts (layers, caches, …) that at least one of the checkpoints has."""
    plan = read_weights("int8")
    graphs = [
        measure_checkpoint(directory, read_hf_config(directory), plan) for directory in directories
    ]
    return list(dict.fromkeys(part for model, weights in graphs for part in _parts(model, weights)))


def _parts(model: LanguageModel, weights: MeasuredWeights) -> Iterator[str]:
    attention = [
        node for node in model.graph.get_ops() if node.get_type_name() == "PagedAttentionExtension"
    ]
    if any(_constant(node, 10) for node in attention):
        yield "sliding windows"
    if any(node.input_value(20).get_partial_shape()[1].get_length() for node in attention):
        yield "attention sinks"
    if len({node.get_rt_info()["k_head_size"].astype(int) for node in attention}) > 1:
        yield "two head sizes"
    if any(_sizes(node) for node in attention):
        yield "latent attention"
    if any("experts" in name or "_moe." in name for name in weights.used):
        yield "experts"
    if len(model.ropes) > 1:
        yield "two kinds of rotary positions"
    states = {
        name.split(".")[1]
        for port in model.graph.inputs
        if (name := port.get_any_name()).startswith("state.")
    }
    yield from (part for kind, part in _PARTS.items() if kind in states)


def _constant(node: Node, index: int) -> int:
    return int(node.input_value(index).get_node().data)


def _sizes(node: Node) -> bool:
    """Tells whether keys and values differ in size, as compressed ones do."""
    facts = node.get_rt_info()
    return bool(facts["k_head_size"].astype(int) != facts["v_head_size"].astype(int))


if __name__ == "__main__":
    PATH.write_text(models_document(), encoding="utf-8")
