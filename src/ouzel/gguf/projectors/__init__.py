"""Finds the description of an mmproj file by its `clip.projector_type`."""

from ouzel.checkpoint.model_groups import describe_unsupported
from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts
from ouzel.gguf.projectors.kind import ANY, Pair, Projector
from ouzel.gguf.projectors.minicpmv import MINICPMV
from ouzel.gguf.projectors.qwen import QWEN
from ouzel.gguf.projectors.tiles import TILES
from ouzel.gguf.projectors.whole import WHOLE

PROJECTORS = MINICPMV | QWEN | TILES | WHOLE
_ARCHITECTURE = "clip"
_TYPE = "projector_type"


def find_projector(facts: Facts) -> Projector:
    """Returns the description of the file's kind. Raises ModelLoadError."""
    if facts.architecture != _ARCHITECTURE:
        raise ModelLoadError(
            f"{facts.source}: general.architecture of an mmproj file must be {_ARCHITECTURE}, "
            f"found {facts.architecture}"
        )
    key = next((key for key in (_TYPE, f"vision.{_TYPE}") if facts.has(key)), _TYPE)
    name = facts.text(key)
    if name not in PROJECTORS:
        label = f"{facts.source}: clip.{key}"
        raise ModelLoadError(describe_unsupported(name, label, PROJECTORS))
    return PROJECTORS[name]


def find_pair(projector: Projector, text_model_type: str) -> Pair | None:
    """Returns the pair of the encoder and a language model; None if they do not belong together."""
    return projector.pairs.get(text_model_type) or projector.pairs.get(ANY)
