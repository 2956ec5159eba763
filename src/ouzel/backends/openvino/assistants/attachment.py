"""Joins a model and the assistant that uses its parts."""

from dataclasses import replace
from pathlib import Path

from ouzel.backends.openvino.assistants.gemma4_assistant import build, read_assistant_config
from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.kernels.attention import PLUGIN_ATTENTION
from ouzel.backends.openvino.language_model import LanguageModel, LentParts, PredictionGraphs
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.loader import load_checkpoint
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.checkpoint.draft_head import DRAFT_CONFIG
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError

# Places among the inputs of an attention, which graph/attention.py lists.
_CACHES = (3, 4)


def load_assistant(
    directory: Path, plan: WeightPlan, cache_dir: str, *, packs: bool = False
) -> LanguageModel:
    """Loads the assistant, whose graph cannot run alone. Raises ModelLoadError."""
    config = read_assistant_config(read_hf_config(directory, DRAFT_CONFIG))
    return load_checkpoint(directory, config, plan, cache_dir, build, packs=packs)


def measure_assistant(
    directory: Path, plan: WeightPlan, *, packs: bool = False
) -> tuple[LanguageModel, MeasuredWeights]:
    """Returns the assistant as `load_assistant` does, with weights that are not read.

    Raises ModelLoadError.
    """
    config = read_assistant_config(read_hf_config(directory, DRAFT_CONFIG))
    return measure_checkpoint(directory, config, plan, build, packs=packs)


def attach_assistant(model: LanguageModel, assistant: LanguageModel) -> LanguageModel:
    """Returns the model with the assistant as its prediction; changes that graph in place.

    Raises ModelLoadError if the assistant was made for another model.
    """
    assert model.lent is not None, "the model was built to lend parts"
    if assistant.hidden_size != model.hidden_size:
        raise ModelLoadError(
            f"draft_model: must have the model's hidden size {model.hidden_size} as "
            f"backbone_hidden_size, found {assistant.hidden_size}"
        )
    if assistant.vocab_size != model.vocab_size:
        raise ModelLoadError(
            f"draft_model: must have the model's vocab_size {model.vocab_size}, "
            f"found {assistant.vocab_size}"
        )
    rename_caches(assistant.graph, model.lent)
    prediction = PredictionGraphs(
        head=model.lent.head,
        layer=assistant.graph,
        arrays=assistant.arrays,
        embedding=model.lent.embedding,
        ropes=assistant.ropes,
        hidden_size=assistant.hidden_size,
    )
    return replace(
        model,
        prediction=prediction,
        arrays=model.arrays + assistant.arrays,
        mappings=model.mappings + assistant.mappings,
        unmapped_bytes=model.unmapped_bytes + assistant.unmapped_bytes,
    )


def rename_caches(graph: ov.Model, lent: LentParts) -> None:
    """Names the caches, which have names of kinds of layers, like the model's caches.

    Raises ModelLoadError if the model has no such cache.
    """
    renamed = {str(cache.layer) for cache in lent.caches.values()}
    for node in attentions(graph):
        facts = node.get_rt_info()
        parameters = [node.input_value(index).get_node() for index in _CACHES]
        kind = parameters[0].get_friendly_name().partition(".")[2]
        if kind in renamed:  # an earlier layer of the kind reads the same cache
            continue
        if kind not in lent.caches:
            raise ModelLoadError(
                f"draft_model: layers must be of the model's kinds {', '.join(lent.caches)}, "
                f"found {kind}"
            )
        cache = lent.caches[kind]
        found = (facts["num_k_heads"].astype(int), facts["k_head_size"].astype(int))
        if found != (cache.num_kv_heads, cache.head_dim):
            raise ModelLoadError(
                f"draft_model: layers of {kind} must have the model's {cache.num_kv_heads} "
                f"key-value heads of {cache.head_dim} channels, found {found[0]} of {found[1]}"
            )
        for name, parameter in zip(("key", "value"), parameters, strict=True):
            parameter.output(0).set_names({f"{name}_cache.{cache.layer}"})
            parameter.set_friendly_name(f"{name}_cache.{cache.layer}")


def attentions(graph: ov.Model) -> list[ov.Node]:
    return [node for node in graph.get_ordered_ops() if node.get_type_name() == PLUGIN_ATTENTION]
