"""Makes the files of sentence-transformers for a GGUF file that names the pooling of its vectors.

The numbers are llama.cpp's (constants.py, PoolingType). Its server normalises every vector.
"""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures import find_architecture
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import Gguf

_NONE, _RANKS = 0, 4
_MODES = {1: "mean", 2: "cls", 3: "lasttoken"}
_MODULES = {
    "": "sentence_transformers.models.Transformer",
    "1_Pooling": "sentence_transformers.models.Pooling",
    "2_Normalize": "sentence_transformers.models.Normalize",
}


def make_sentence_files(gguf: Gguf) -> dict[str, JsonObject | list[JsonObject]]:
    """Returns the contents of the files by name; none for a model that generates or scores.

    Raises ModelLoadError for an unknown pooling, and for a decoder that scores.
    """
    facts = Facts(gguf)
    is_encoder = find_architecture(facts.architecture, facts.source).is_encoder
    kind = facts.integer("pooling_type", _NONE)
    if kind == _RANKS and not is_encoder:
        raise ModelLoadError(
            f"{facts.source}: {facts.architecture}.pooling_type {kind} (rank) is supported for "
            "encoders only; serve the original checkpoint"
        )
    if kind == _RANKS or (kind == _NONE and not is_encoder):
        return {}
    # Without a pooling in the file, the default of sentence-transformers counts.
    mode = "mean" if kind == _NONE else _MODES.get(kind)
    if mode is None:
        raise ModelLoadError(
            f"{facts.source}: {facts.architecture}.pooling_type must be 0 (none), 1 (mean), "
            f"2 (cls), 3 (last) or 4 (rank), found {kind}"
        )
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": type_}
        for number, (path, type_) in enumerate(_MODULES.items())
    ]
    return {"modules.json": list(modules), "1_Pooling/config.json": {"pooling_mode": mode}}
