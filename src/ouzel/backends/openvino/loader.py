"""Loads a checkpoint directory as a graph, from the weight cache if possible."""

import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ouzel.backends.openvino.adapters.adapter_options import num_adapters
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.language_model import LanguageModel, VectorHead
from ouzel.backends.openvino.models import Build as FamilyBuild
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.vision import VisionFamily, vision_family
from ouzel.backends.openvino.weights.cache import (
    CachedWeights,
    EntryWriter,
    discard_entry,
    entry_path,
    preferred_path,
)
from ouzel.backends.openvino.weights.compress import CompressedWeights, MatrixEncoders
from ouzel.backends.openvino.weights.encodings import AUTO_WIDTH
from ouzel.backends.openvino.weights.entry_use import note_use
from ouzel.backends.openvino.weights.leftovers import (
    EMBEDDING,
    HEAD,
    refuse_another_head,
    refuse_leftovers,
    refuse_other_copies,
)
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.renamed import RenamedWeights
from ouzel.backends.openvino.weights.source import MemoryWriter, Tensors, Weights, value_types
from ouzel.backends.openvino.weights.stored import StoredWeights, find_weights
from ouzel.backends.openvino.weights.width_report import held_matrices, report_widths
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import ModelConfig
from ouzel.config.weights import WeightPlan, WidthOption
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

Build = Callable[[CachedWeights], LanguageModel]
BuildFirst = Callable[
    [CompressedWeights], LanguageModel
]  # of weights that know what was used of them

logger = logging.getLogger(__name__)


def load_checkpoint(
    directory: Path,
    config: HfConfig,
    plan: WeightPlan,
    cache_dir: str,
    *,
    predicts: bool = False,
    adapter_rank: int = 0,
    vector_head: VectorHead | None = None,
) -> LanguageModel:
    """Returns the model with weights from the cache, or compresses the weights and stores them
    first.

    With `predicts` the layer that predicts further tokens is loaded, too. With an `adapter_rank`
    above 0 the model takes adapters of up to this rank; with a `vector_head` it makes vectors.
    Raises ModelLoadError if the checkpoint cannot be served.
    """
    text, vision = config.text_model(), vision_family(config)
    stored, build_text = find_weights(directory, text), family(text.model_type)
    plan = plan_for(stored, plan)
    log_modes(directory, config, has_vision=vision is not None)
    build_graph = partial(built, config, build_text, vision, plan=plan, predicts=predicts)
    build_graph = partial(build_graph, adapter_rank=adapter_rank, vector_head=vector_head)

    def build(weights: CachedWeights | CompressedWeights) -> LanguageModel:
        model = build_graph(weights=weights)
        if isinstance(weights, CachedWeights):
            log_widths(stored, plan, weights.index)
        return replace(
            model, weights=describe_weights(stored, plan, weights.index), identity=entry.name
        )

    def build_first(weights: CompressedWeights) -> LanguageModel:
        model = build(weights)
        check_use(config, model, tensors, weights.used, makes_vectors=vector_head is not None)
        if stored.compressed_as and plan != plan.with_auto(AUTO_WIDTH):
            log_kept(directory, summary, weights)
        hint_at_calibration(plan, weights.index)
        return model

    files = files_of_entry(directory, stored)
    entry = entry_path(cache_dir, directory, files, entry_kind(plan, predicts, vector_head))
    if (cached := load_preferred(entry, build)) is not None:
        note_use(cached.cache_entry or entry, directory, files)
        return cached
    log_compression(directory, plan, entry)
    tensors, summary = stored.open()
    try:
        with stage("compressing the weights", sum(file.stat().st_size for file in stored.files)):
            compress(tensors, entry, build_first, recompress=plan.recompress)
        cached = load_cached(entry, build)
        note_use(entry, directory, files)
    except OSError as error:
        logger.warning("compressed weights cannot be stored in %s: %s", entry.parent, error)
    if cached is not None:
        return replace(cached, is_entry_new=True)
    weights = CompressedWeights(tensors, MemoryWriter(), recompress=plan.recompress)
    model = build_first(weights)
    log_widths(stored, plan, weights.index)
    return model


def find_entry(
    directory: Path, config: HfConfig, model: ModelConfig, vector_head: VectorHead | None
) -> Path:
    """Returns the path of the checkpoint's cache entry, which may not exist yet.

    Raises ModelLoadError if the directory has no weights that can be read.
    """
    stored = find_weights(directory, config.text_model())
    kind = entry_kind(plan_for(stored, model.weight_plan), model.mtp, vector_head)
    return preferred_path(
        entry_path(model.cache_dir, directory, files_of_entry(directory, stored), kind)
    )


def plan_for(stored: StoredWeights, plan: WeightPlan) -> WeightPlan:
    """Returns the plan that the name of a cache entry contains.

    A checkpoint of plain numbers has no quantised matrices to keep or to recompress, so that its
    plan has no `auto` and no `recompress`.
    """
    return plan if stored.compressed_as else replace(plan.with_auto(AUTO_WIDTH), recompress=False)


def files_of_entry(directory: Path, stored: StoredWeights) -> list[Path]:
    return [directory / "config.json", *stored.files]


def entry_kind(plan: WeightPlan, predicts: bool, vector_head: VectorHead | None) -> str:
    """Describes the contents of a cache entry in its name: the plan and the parts of the model."""
    head = "" if vector_head is None else ",score" if vector_head.num_labels else ",embed"
    return f"{plan}{',recompress' if plan.recompress else ''}{',mtp' if predicts else ''}{head}"


def describe_weights(stored: StoredWeights, plan: WeightPlan, index: Mapping[str, Any]) -> str:
    """Returns the encoding of the weights as users read it, such as `gguf as i8 (int4)`.

    `index` is the index of a weight cache.
    """
    has_auto = plan != plan.with_auto(AUTO_WIDTH)
    if not stored.compressed_as or not (
        has_auto or any(matrix.is_as_under_auto for matrix in held_matrices(index))
    ):
        return str(plan)
    kept = f"{stored.compressed_as} as {value_types(index)}"
    return kept if str(plan) == "auto" else f"{kept} ({plan})"


def log_widths(stored: StoredWeights, plan: WeightPlan, index: Mapping[str, Any]) -> None:
    """Logs the resulting widths if the user named a width for a quantised checkpoint."""
    if (
        stored.compressed_as
        and str(plan) != "auto"
        and (report := report_widths(held_matrices(index)))
    ):
        logger.info("--weights %s: %s", plan, report)


def refuse_options(model: ModelConfig) -> None:
    """Raises ModelLoadError for an option that only a checkpoint can have, and not an IR."""
    if model.mtp:
        raise ModelLoadError("mtp: an OpenVINO IR has no layer that predicts further tokens")
    if model.task == "embed":
        raise ModelLoadError("task embed: an OpenVINO IR has no output for embeddings")
    if num_adapters(model):
        raise ModelLoadError(
            "lora, max_loras: an OpenVINO IR takes no adapters; serve its original checkpoint"
        )


def measure_checkpoint(
    directory: Path,
    config: HfConfig,
    plan: WeightPlan,
    *,
    predicts: bool = False,
    vector_head: VectorHead | None = None,
) -> tuple[LanguageModel, MeasuredWeights]:
    """Builds the graph as `load_checkpoint` does, without reading the weights.

    Only a head that may be a copy of the embedding is read, to compare the two. Raises
    ModelLoadError like `load_checkpoint`.
    """
    text = config.text_model()
    tensors, _ = find_weights(directory, text).open()
    weights = MeasuredWeights(tensors, recompress=plan.recompress)
    build, vision = family(text.model_type), vision_family(config)
    model = built(config, build, vision, weights, plan, predicts=predicts, vector_head=vector_head)
    check_use(config, model, tensors, weights.used, makes_vectors=vector_head is not None)
    return model, weights


def check_use(
    config: HfConfig,
    model: LanguageModel,
    tensors: Tensors,
    used: AbstractSet[str],
    *,
    makes_vectors: bool = False,
) -> None:
    """Raises ModelLoadError if the checkpoint has tensors that the model should use and does not.

    A model that makes vectors needs no head.
    """
    text = config.text_model()
    left_out = () if model.vision is None else model.vision.left_out
    refuse_leftovers(
        text,
        tensors.names(),
        used,
        has_other_modes=text is not config,
        predicts=model.prediction is not None,
        left_out_prefixes=left_out,
    )
    shape = model.vocab_size, model.hidden_size
    if not makes_vectors:
        refuse_another_head(tensors, used, shape)
    if model.prediction is not None:
        refuse_other_copies(text, tensors, used, shape)


def built(
    config: HfConfig,
    build: FamilyBuild,
    vision: VisionFamily | None,
    weights: Weights,
    plan: WeightPlan,
    *,
    predicts: bool = False,
    adapter_rank: int = 0,
    vector_head: VectorHead | None = None,
) -> LanguageModel:
    """Builds the language model and its vision encoder.

    Raises ModelLoadError if OpenVINO refuses a number in config.json that the family accepts.
    """
    images = None if vision is None else vision.image_shape(config)
    if not weights.has(EMBEDDING) and weights.has(EMBEDDING.removeprefix("model.")):
        weights = RenamedWeights(weights, "model.", "")  # the model was saved without its head
    try:
        builder = Builder(
            weights,
            plan,
            images,
            predicts=predicts,
            adapter_rank=adapter_rank,
            vector_head=vector_head,
        )
        model = build(text_model(config, weights), builder)
        if vision is None or images is None:
            return model
        width: WidthOption = "f32" if plan.layers == "f32" else "bf16"
        encoder = vision.build(config, VisionBuilder(weights, width))
        return replace(model, vision=encoder, sees_images_whole=images.sees_whole)
    except RuntimeError as error:
        raise ModelLoadError(
            f"OpenVINO could not build a {config.model_type} graph from this config.json: "
            f"{str(error).splitlines()[0]}"
        ) from error


def text_model(config: HfConfig, weights: Weights) -> HfConfig:
    """Returns the configuration of the language model, with `tie_word_embeddings` as the tensors
    say.

    In a checkpoint of several modes `text_config` and the level above it may disagree about
    `tie_word_embeddings`: either value may be the default of its class.
    """
    text = config.text_model()
    if text is config:
        return config
    if weights.has(HEAD):
        return text.with_values(tie_word_embeddings=False)
    parts = (config, config.section("text_config") or config)
    is_tied = any(part.flag("tie_word_embeddings", False) for part in parts)
    return text.with_values(tie_word_embeddings=True) if is_tied else text


def log_modes(directory: Path, config: HfConfig, *, has_vision: bool) -> None:
    """Logs the parts of a checkpoint of several modes that are served."""
    text = config.text_model()
    if text is not config:
        and_encoder = " and the vision encoder" if has_vision else ""
        logger.info(
            "%s (%s): serving the language model %s%s",
            directory,
            config.model_type,
            text.model_type,
            and_encoder,
        )


def log_compression(directory: Path, plan: WeightPlan, entry: Path) -> None:
    logger.info(
        "compressing the weights of %s to %s; the next start reads them from %s",
        directory,
        plan,
        entry,
    )


def hint_at_calibration(plan: WeightPlan, index: Mapping[str, Any]) -> None:
    """Logs the command that makes better int4 weights, if some matrix was rounded to int4."""
    if any(
        matrix.fate == "rounded" and matrix.encoding.values == "i4"
        for matrix in held_matrices(index)
    ):
        recompress = " --recompress" if plan.recompress else ""
        logger.info(
            "`ouzel pull --weights %s%s --calibrate` makes int4 weights with smaller errors",
            plan,
            recompress,
        )


def log_kept(directory: Path, summary: str, weights: CompressedWeights) -> None:
    num_matrices = sum("encoding" in entry for entry in weights.index.values())
    logger.info(
        "%s is quantised (%s): %d matrices keep their stored values, %d others are compressed; "
        "all together are %s",
        directory,
        summary,
        weights.num_kept,
        num_matrices - weights.num_kept,
        value_types(weights.index),
    )


def load_preferred(entry: Path, build: Build) -> LanguageModel | None:
    """Loads the calibrated weights if they exist and are whole, else the weights of the entry
    itself.
    """
    preferred = preferred_path(entry)
    loaded = load_cached(preferred, build)
    if loaded is not None and preferred != entry:
        logger.info("serving the calibrated weights %s", preferred)
    return load_cached(entry, build) if loaded is None and preferred != entry else loaded


def load_cached(entry: Path, build: Build) -> LanguageModel | None:
    """Builds the model from a cache entry; returns None if there is no entry or a broken one, which
    it deletes.
    """
    if not entry.exists():
        return None
    try:
        weights = CachedWeights(entry)
        return replace(
            build(weights), mappings=(weights.mapping,), cache_entry=entry, identity=entry.name
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        discard_entry(entry, f"it is broken: {error!r}")
        return None


def compress(
    tensors: Tensors,
    entry: Path,
    build: BuildFirst,
    encoders: MatrixEncoders | None = None,
    *,
    recompress: bool,
) -> None:
    """Makes the cache entry by building the graph, which asks for each weight once."""
    with EntryWriter(entry) as writer:
        weights = CompressedWeights(tensors, writer, encoders, recompress=recompress)
        build(weights)
        writer.commit(weights.index)
