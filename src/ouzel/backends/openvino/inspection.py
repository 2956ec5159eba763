"""Tells how a model directory would be served, without loading it.

Only config.json and the headers of the weight files are read.
"""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec

from ouzel.backends.openvino.adapters.adapter_options import num_adapters
from ouzel.backends.openvino.assistants.attachment import attach_assistant, measure_assistant
from ouzel.backends.openvino.auto_precision import resolve_auto_precision
from ouzel.backends.openvino.cache.cache_verdict import SCALED, cache_name
from ouzel.backends.openvino.cache.chosen_cache import find_choice
from ouzel.backends.openvino.cache.kv_cache import cache_tables
from ouzel.backends.openvino.cache.memory_plan import plan_memory
from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.checks.row_check import refuse_kinds
from ouzel.backends.openvino.compilation import (
    can_attend,
    check_options,
    compile_encoder,
    compile_graphs,
    fuse_graphs,
    precision_name,
)
from ouzel.backends.openvino.draft_head_loader import measure_draft_head
from ouzel.backends.openvino.drafts import (
    names_assistant,
    refuse_draft_files,
    refuse_unfit_draft,
)
from ouzel.backends.openvino.encoding import (
    encoder_loader,
    find_max_text_len,
    is_encoder,
    load_encoder,
    read_encoder_files,
)
from ouzel.backends.openvino.graph.attention import KvInputs, paged_attention, read_softcap_note
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.inspected_model import InspectedDraft, Inspection
from ouzel.backends.openvino.ir import is_ir_directory, load_ir
from ouzel.backends.openvino.kernels.attention import attends_everywhere
from ouzel.backends.openvino.kernels.library import uses_kernels
from ouzel.backends.openvino.kernels.program import keep_row_bits
from ouzel.backends.openvino.kernels.usage import describe_products
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.loader import find_entry, refuse_options
from ouzel.backends.openvino.pooling import compute_vector_size
from ouzel.backends.openvino.runners.state_tables import find_state_tables
from ouzel.backends.openvino.speaking.inspection import inspect_speaker
from ouzel.backends.openvino.speaking.loader import is_speaker
from ouzel.backends.openvino.speech_loader import inspect_sound
from ouzel.backends.openvino.task import find_task
from ouzel.backends.openvino.token_heads import list_forms, read_token_heads
from ouzel.backends.openvino.vector_head import vector_head, vector_size
from ouzel.backends.openvino.weights.cache import calibrated_index, sizes_in_entry
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.width_report import read_matrices, report_widths
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.checkpoint.lone_drafts import refuse_lone_draft
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import EngineConfig, ModelConfig
from ouzel.machine.free_memory import available_bytes

_ENDLESS_BYTES = 2**50  # memory that limits no cache


@dataclass(frozen=True, kw_only=True)
class _MeasuredModel:
    """A model without its weights, their sizes, and its draft."""

    language_model: LanguageModel
    weights: tuple[tuple[str, int], ...]
    draft: InspectedDraft | None
    are_weights_calibrated: bool = False
    stored: str = ""
    num_parameters: int = 0
    entry: Path | None = None  # the entry of the cache that a load would map
    is_ir: bool = False


def inspect_model(
    model: ModelConfig, engine: EngineConfig, *, free_bytes: int | None = None
) -> Inspection:
    """Inspects the local directory `model.model`.

    `free_bytes` is the memory for weights and caches; None: the free memory of the machine. Raises
    ModelLoadError if the model could not be served.
    """
    core = ov.Core()
    check_options(core, engine)
    directory = Path(model.model)
    refuse_lone_draft(directory)
    config = read_hf_config(directory)
    if is_speaker(directory):
        return inspect_speaker(core, directory, config, model, engine)
    if is_encoder(directory):
        return inspect_encoder(core, directory, config, model, engine)
    measured = measure_model(core, directory, config, model, engine)
    language_model, draft = measured.language_model, measured.draft
    if engine.deterministic:
        refuse_kinds(config.model_type, language_model, num_adapters(model))
    free_bytes = available_bytes() if free_bytes is None else free_bytes
    free_bytes = free_bytes // engine.replicas - sum(size for _, size in measured.weights)
    if draft is not None and draft.is_part_of_model:
        free_bytes -= draft.weight_bytes
    attends = can_attend(core, resolve_auto_precision(core, engine, language_model))
    choice = find_choice(
        *(core, language_model, model, engine, measured.entry),
        attends=attends,
        free_bytes=free_bytes,
    )
    engine = resolve_auto_precision(core, choice.engine, language_model)
    attention = make_attention_model(language_model)
    own_attention = all(map(attends_everywhere, language_model.graphs))
    fused = fuse_graphs(core, attention, engine, attends=own_attention)
    compiled, *further = compile_graphs(core, fused, attention, engine)
    tables = cache_tables([compiled])
    states = find_state_tables(
        language_model.graph, compiled.get_property("INFERENCE_PRECISION_HINT")
    )
    is_deterministic = engine.deterministic or keep_row_bits(
        fuse_graphs(core, language_model, engine, attends=own_attention), may_be_wide=True
    )
    max_model_len = language_model.context_length(model.max_model_len)
    blocks, slots = plan_memory((tables, states), max_model_len, model, engine, free_bytes)
    return Inspection(
        model_type=config.model_type,
        text_model_type=config.text_model().model_type,
        weights=measured.weights,
        are_weights_calibrated=measured.are_weights_calibrated,
        stored=measured.stored,
        num_parameters=measured.num_parameters,
        precision=precision_name(compiled, engine),
        kernels="" if measured.is_ir else describe_products(language_model.graphs, engine),
        is_deterministic=is_deterministic,
        kv_cache_dtype=cache_name(tables, has_scales=choice.cache == SCALED),
        kv_cache_is_open=choice.is_open,
        kv_cache_reason=choice.reason,
        kv_token_bytes=sum(table.row_bytes for table in tables) // blocks.block_size,
        num_kv_tokens=blocks.num_blocks * blocks.block_size,
        max_positions=language_model.max_positions,
        default_positions=language_model.default_positions,
        max_model_len=blocks.max_model_len,
        max_num_seqs=slots.max_num_seqs,
        num_state_slots=slots.num_slots,
        state_slot_bytes=slots.slot_bytes,
        task=find_task(config, directory, model.task),
        vector_size=vector_size(language_model),
        attends_to_whole_prompts=language_model.attends_to_whole_prompts,
        draft=draft,
        sound=inspect_sound(further, language_model.speech, engine, free_bytes=free_bytes),
    )


def measure_model(
    core: ov.Core, directory: Path, config: HfConfig, model: ModelConfig, engine: EngineConfig
) -> _MeasuredModel:
    """Builds the graph of a model that generates, and measures the weights of it and its draft.

    Raises ModelLoadError.
    """
    if is_ir_directory(directory):
        refuse_options(model)
        language_model = load_ir(core, directory, config)
        return _MeasuredModel(
            language_model=language_model,
            weights=(("ir", sum(map(len, language_model.mappings))),),
            draft=inspect_draft_model(model, engine) if model.draft_model else None,
            is_ir=True,
        )
    has_assistant = names_assistant(model)
    head, packs = vector_head(config, directory, model), uses_kernels(engine)
    entry = find_entry(directory, config, model, head, packs=packs)
    drafting = measure_draft_head(model, config, packs=packs)
    # The graph of the model takes the weights of the head again: they are counted before.
    draft = None if drafting is None else _describe_part("EAGLE-3 head", drafting[1])
    language_model, weights = measure_checkpoint(
        *(directory, config, model.weight_plan),
        predicts=model.mtp,
        lends_parts=has_assistant,
        draft_head=None if drafting is None else drafting[0],
        vector_head=head,
        packs=packs,
    )
    if has_assistant:
        assistant, of_draft = measure_assistant(
            Path(model.draft_model), model.weight_plan, packs=packs
        )
        language_model = attach_assistant(language_model, assistant)
        draft = _describe_part("assistant", of_draft)
    elif model.draft_model and draft is None:
        draft = inspect_draft_model(model, engine)
    index = calibrated_index(entry)
    return _MeasuredModel(
        language_model=language_model,
        weights=list_weight_sizes(weights) if index is None else sizes_in_entry(index),
        draft=draft,
        are_weights_calibrated=bool(index),
        stored=report_widths(weights.held if index is None else read_matrices(index)),
        num_parameters=weights.num_parameters,
        entry=entry,
    )


def inspect_draft_model(model: ModelConfig, engine: EngineConfig) -> InspectedDraft:
    """Inspects a smaller model. Raises ModelLoadError if the model could not use it as its draft.

    Its weights are loaded after the model's cache is planned: they do not make that cache smaller.
    """
    refuse_draft_files(model)
    engine = msgspec.structs.replace(engine, deterministic=False)
    found = inspect_model(model.make_draft_config(), engine, free_bytes=_ENDLESS_BYTES)
    refuse_unfit_draft(found)
    return InspectedDraft(
        kind="draft model",
        weights=found.weights,
        num_parameters=found.num_parameters,
        kv_token_bytes=found.kv_token_bytes,
    )


def _describe_part(
    kind: Literal["assistant", "EAGLE-3 head"], weights: MeasuredWeights
) -> InspectedDraft:
    return InspectedDraft(
        kind=kind, weights=list_weight_sizes(weights), num_parameters=weights.num_parameters
    )


def inspect_encoder(
    core: ov.Core, directory: Path, config: HfConfig, model: ModelConfig, engine: EngineConfig
) -> Inspection:
    """Inspects an encoder, a model without a KV cache."""
    if is_ir_directory(directory):
        loaded, num_parameters = load_encoder(core, directory, config, model), 0
        weights: tuple[tuple[str, int], ...] = (("ir", sum(map(len, loaded.mappings))),)
    else:
        loaded, measured = encoder_loader(directory, config, model).measure()
        weights, num_parameters = list_weight_sizes(measured), measured.num_parameters
    files = read_encoder_files(directory, config, model)
    compiled = compile_encoder(core, make_smallest_graph(), loaded.hidden_size, engine)
    return Inspection(
        model_type=config.model_type,
        text_model_type=config.model_type,
        weights=weights,
        are_weights_calibrated=False,
        stored="",
        num_parameters=num_parameters,
        precision=precision_name(compiled, engine),
        kernels="",
        is_deterministic=engine.deterministic,
        kv_cache_dtype="none",
        kv_cache_is_open=False,
        kv_cache_reason="",
        kv_token_bytes=0,
        num_kv_tokens=0,
        max_positions=loaded.max_positions,
        default_positions=loaded.max_positions,
        max_model_len=find_max_text_len(model, loaded, files.max_tokens),
        max_num_seqs=engine.max_num_seqs,
        num_state_slots=0,
        state_slot_bytes=0,
        task="score" if loaded.num_labels else "embed",
        vector_size=loaded.num_labels or _find_vector_size(directory, files, loaded.hidden_size),
        forms=("text",) if loaded.num_labels else list_forms(directory, files),
    )


def _find_vector_size(directory: Path, files: SentenceFiles, hidden_size: int) -> int:
    """Returns the number of values in the vector of a text, or else of a token."""
    if files.makes_whole_vectors:
        return compute_vector_size(files, hidden_size)
    return read_token_heads(directory, files, hidden_size).vector_size


def list_weight_sizes(weights: MeasuredWeights) -> tuple[tuple[str, int], ...]:
    """Returns the encodings of the weights with their bytes, the largest first."""
    return tuple((each.description, size) for each, size in weights.bytes_by_encoding.most_common())


def make_smallest_graph() -> ov.Model:
    """Returns the smallest graph; compiling it shows the precision of all graphs."""
    values = ops.parameter([1], ov.Type.f32)
    return ov.Model([ops.result(ops.relu(values))], [values])


def make_attention_model(model: LanguageModel) -> LanguageModel:
    """Returns a model with nothing but one attention operation of `model` for each cache.

    Compiling its graph shows the types and sizes of the KV cache without reading weights. Without
    attention operations the graph has the token ids only. Further layers, and an assistant, may
    read the cache of a layer.
    """
    graph = PagedGraph()
    attentions: dict[str, Node] = {}
    for node in chain.from_iterable(each.get_ops() for each in model.graphs):
        if node.get_type_name() == "PagedAttentionExtension":
            attentions.setdefault(node.input_value(3).get_node().get_friendly_name(), node)
    outputs = [copy_attention(graph, node) for node in attentions.values()]
    rows = ops.concat(outputs, -1) if outputs else ops.convert(graph.token_ids, "f32")
    alone = graph.finish(graph.sample_rows(rows))
    return replace(model, graph=alone, arrays=graph.arrays, mappings=(), prediction=None)


def copy_attention(graph: PagedGraph, node: Node) -> Node:
    """Adds an attention operation with inputs of the same shapes as those `node` has."""
    facts = {
        name: node.get_rt_info()[name].astype(int)
        for name in ("num_k_heads", "k_head_size", "v_head_size")
    }
    num_heads, key_dim, value_dim = facts.values()
    key_name, value_name = (
        node.input_value(index).get_node().get_friendly_name() for index in (3, 4)
    )
    num_query_heads = node.input_value(0).get_partial_shape()[1].get_length() // key_dim
    query = graph.input(f"query.{key_name}", [-1, num_query_heads, key_dim], ov.Type.f32)
    key = graph.input(f"key.{key_name}", [-1, num_heads, key_dim], ov.Type.f32)
    value = graph.input(f"value.{key_name}", [-1, num_heads * value_dim], ov.Type.f32)
    cache = KvInputs(
        *(graph.input(name, [-1] * 4, ov.Type.dynamic) for name in (key_name, value_name))
    )
    sizes = {"num_kv_heads": num_heads, "key_dim": key_dim, "value_dim": value_dim}
    softcap = read_softcap_note(node)
    return paged_attention(graph, query, key, value, cache, scale=1.0, softcap=softcap, **sizes)
