"""Makes the files of sentence-transformers for a GGUF file that names the pooling of its vectors.

The numbers are llama.cpp's (constants.py, PoolingType). Its server normalises every vector.
"""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures import find_architecture
from ouzel.gguf.architectures.gemma import DENSE_PARTS
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import Gguf

_NONE, _RANKS = 0, 4
_MODES = {1: "mean", 2: "cls", 3: "lasttoken"}
_POOLING = "1_Pooling"
_MODULE = "sentence_transformers.models."


def make_sentence_files(gguf: Gguf) -> dict[str, JsonObject | list[JsonObject]]:
    """Returns the contents of the files by name; none for a model that generates or scores.

    Raises ModelLoadError for an unknown pooling, and for a decoder that scores.
    """
    facts = Facts(gguf)
    is_encoder = find_architecture(facts.architecture, facts.source).makes_vectors
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
    dense = [name for name in DENSE_PARTS if facts.has_tensor(f"{name}.weight")]
    kinds = {"": "Transformer", _POOLING: "Pooling"}
    kinds |= dict.fromkeys(dense, "Dense") | {"normalize": "Normalize"}
    modules: list[JsonObject] = [
        {"idx": number, "name": str(number), "path": path, "type": _MODULE + module}
        for number, (path, module) in enumerate(kinds.items())
    ]
    return {
        "modules.json": modules,
        f"{_POOLING}/config.json": {"pooling_mode": mode},
        **{f"{name}/config.json": _describe_dense(facts, name) for name in dense},
    }


def _describe_dense(facts: Facts, name: str) -> JsonObject:
    """Describes a dense layer, whose weight stays in the GGUF file."""
    num_outputs, num_inputs = facts.tensor_shape(f"{name}.weight")
    return {
        "in_features": num_inputs,
        "out_features": num_outputs,
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
