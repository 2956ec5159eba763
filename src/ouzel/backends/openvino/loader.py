"""Loads a checkpoint directory as a graph, from the weight cache if possible."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ouzel.backends.openvino.adapters.adapter_options import num_adapters
from ouzel.backends.openvino.checkpoint_graph import build_model, check_use
from ouzel.backends.openvino.draft_head_loader import LoadedDraftHead
from ouzel.backends.openvino.drafts import names_assistant, names_draft_head
from ouzel.backends.openvino.graph.adapter_shape import NO_ADAPTERS, AdapterLimits
from ouzel.backends.openvino.hearing import hearing_family
from ouzel.backends.openvino.language_model import LanguageModel, VectorHead
from ouzel.backends.openvino.models import Build as FamilyBuild
from ouzel.backends.openvino.models import check_machine, family
from ouzel.backends.openvino.vision import vision_family
from ouzel.backends.openvino.weights.cache import (
    PACKED,
    CachedWeights,
    EntryWriter,
    discard_entry,
    entry_path,
    preferred_path,
)
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.encodings import AUTO_WIDTH
from ouzel.backends.openvino.weights.entry_use import note_use
from ouzel.backends.openvino.weights.source import MemoryWriter, Tensors, Weights, value_types
from ouzel.backends.openvino.weights.stored import StoredWeights, find_weights
from ouzel.backends.openvino.weights.width_report import read_matrices, report_widths
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import ModelConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointBuilder:
    """Builds the model of one checkpoint, from weights of the cache or of its files."""

    directory: Path
    config: HfConfig
    build_text: FamilyBuild
    stored: StoredWeights
    plan: WeightPlan
    identity: str  # the name of the cache entry
    predicts: bool
    lends_parts: bool
    draft_head: LoadedDraftHead | None
    adapters: AdapterLimits
    vector_head: VectorHead | None

    def build_from_cache(self, weights: CachedWeights) -> LanguageModel:
        model = self._build(weights, weights.index)
        log_widths(self.stored, self.plan, weights.index)
        return model

    def build_from_files(
        self, weights: CompressedWeights, tensors: Tensors, summary: str
    ) -> LanguageModel:
        """Builds the model, which compresses the weights, and checks that no tensor is left over.

        `summary` is the form of the tensors, for the log. Raises ModelLoadError.
        """
        model = self._build(weights, weights.index)
        check_use(
            self.config,
            model,
            tensors,
            weights.used,
            makes_vectors=self.vector_head is not None,
        )
        if self.stored.compressed_as and self.plan != self.plan.with_auto(AUTO_WIDTH):
            log_kept(self.directory, summary, weights)
        hint_at_calibration(self.plan, weights.index)
        return model

    def join_draft_head(self, model: LanguageModel) -> LanguageModel:
        """Returns the model with the file or bytes of its draft head, if it has one."""
        return model if self.draft_head is None else self.draft_head.join(model)

    def _build(self, weights: Weights, index: Mapping[str, Any]) -> LanguageModel:
        """Builds the model; `index` is the index of the weights, complete after the build."""
        model = build_model(
            self.config,
            self.build_text,
            vision_family(self.config),
            weights,
            self.plan,
            predicts=self.predicts,
            lends_parts=self.lends_parts,
            draft_head=None if self.draft_head is None else self.draft_head.parts,
            adapters=self.adapters,
            vector_head=self.vector_head,
        )
        description = describe_weights(self.stored, self.plan, index)
        return replace(model, weights=description, identity=self.identity)


def load_checkpoint(
    directory: Path,
    config: HfConfig,
    plan: WeightPlan,
    cache_dir: str,
    build: FamilyBuild | None = None,
    *,
    predicts: bool = False,
    lends_parts: bool = False,
    draft_head: LoadedDraftHead | None = None,
    adapters: AdapterLimits = NO_ADAPTERS,
    vector_head: VectorHead | None = None,
    packs: bool = False,
) -> LanguageModel:
    """Returns the model with weights from the cache, or compresses the weights and stores them
    first.

    `build` is the family's unless it is given. With `predicts` the layer that predicts further
    tokens is loaded, too; with `lends_parts` an assistant can use parts of the model; with a
    `draft_head` the model gives the rows that the head reads, and has its graph. With a rank in
    `adapters` the model takes adapters within these limits; with a `vector_head` it makes vectors.
    With `packs` matrices of integers are packed for Ouzel's own kernels.

    Raises ModelLoadError if the checkpoint cannot be served.
    """
    text = config.text_model()
    stored, build_text = find_weights(directory, text), build or family(text.model_type)
    if build is None:
        check_machine(text)  # before weights are compressed, which takes minutes
    plan = plan_for(stored, plan)
    files = list_entry_files(directory, stored)
    entry = entry_path(
        cache_dir, directory, files, entry_kind(plan, predicts, vector_head, packs=packs)
    )
    builder = CheckpointBuilder(
        directory=directory,
        config=config,
        build_text=build_text,
        stored=stored,
        plan=plan,
        identity=entry.name,
        predicts=predicts,
        lends_parts=lends_parts,
        draft_head=draft_head,
        adapters=adapters,
        vector_head=vector_head,
    )
    log_modes(directory, config)
    if (cached := load_preferred(entry, builder)) is not None:
        note_use(cached.cache_entry or entry, directory, files)
        return cached
    log_compression(directory, plan, entry)
    tensors, summary = stored.open()
    try:
        num_bytes = sum(file.stat().st_size for file in stored.files)
        with stage("compressing the weights", num_bytes), EntryWriter(entry) as writer:
            weights = CompressedWeights(tensors, writer, recompress=plan.recompress, packs=packs)
            builder.build_from_files(weights, tensors, summary)
            writer.commit(weights.index)
        cached = load_cached(entry, builder)
        note_use(entry, directory, files)
    except OSError as error:
        logger.warning("compressed weights cannot be stored in %s: %s", entry.parent, error)
    if cached is not None:
        return replace(cached, is_entry_new=True)
    memory = MemoryWriter()
    weights = CompressedWeights(tensors, memory, recompress=plan.recompress, packs=packs)
    model = builder.build_from_files(weights, tensors, summary)
    log_widths(stored, plan, weights.index)
    return builder.join_draft_head(replace(model, unmapped_bytes=memory.num_bytes))


def find_entry(
    directory: Path,
    config: HfConfig,
    model: ModelConfig,
    vector_head: VectorHead | None,
    *,
    packs: bool,
) -> Path:
    """Returns the path of the checkpoint's cache entry, which may not exist yet.

    Raises ModelLoadError if the directory has no weights that can be read.
    """
    stored = find_weights(directory, config.text_model())
    kind = entry_kind(plan_for(stored, model.weight_plan), model.mtp, vector_head, packs=packs)
    return preferred_path(
        entry_path(model.cache_dir, directory, list_entry_files(directory, stored), kind)
    )


def plan_for(stored: StoredWeights, plan: WeightPlan) -> WeightPlan:
    """Returns the plan that the name of a cache entry contains.

    A checkpoint of plain numbers has no quantised matrices to keep or to recompress, so that its
    plan has no `auto` and no `recompress`.
    """
    return plan if stored.compressed_as else replace(plan.with_auto(AUTO_WIDTH), recompress=False)


def list_entry_files(directory: Path, stored: StoredWeights) -> list[Path]:
    return [directory / "config.json", *stored.files]


def entry_kind(
    plan: WeightPlan, predicts: bool, vector_head: VectorHead | None, *, packs: bool
) -> str:
    """Describes the contents of a cache entry in its name: the plan and the parts of the model."""
    head = "" if vector_head is None else ",score" if vector_head.num_labels else ",embed"
    marks = (",recompress" * plan.recompress, ",mtp" * predicts, head, PACKED * packs)
    return f"{plan}{''.join(marks)}"


def describe_weights(stored: StoredWeights, plan: WeightPlan, index: Mapping[str, Any]) -> str:
    """Returns the encoding of the weights as users read it, such as `gguf as i8 (int4)`.

    `index` is the index of a weight cache.
    """
    has_auto = plan != plan.with_auto(AUTO_WIDTH)
    if not stored.compressed_as or not (
        has_auto or any(matrix.is_as_under_auto for matrix in read_matrices(index))
    ):
        return str(plan)
    kept = f"{stored.compressed_as} as {value_types(index)}"
    return kept if str(plan) == "auto" else f"{kept} ({plan})"


def log_widths(stored: StoredWeights, plan: WeightPlan, index: Mapping[str, Any]) -> None:
    """Logs the resulting widths if the user named a width for a quantised checkpoint."""
    if (
        stored.compressed_as
        and str(plan) != "auto"
        and (report := report_widths(read_matrices(index)))
    ):
        logger.info("--weights %s: %s", plan, report)


def refuse_options(model: ModelConfig) -> None:
    """Raises ModelLoadError for an option that only a checkpoint can have, and not an IR."""
    if model.mtp:
        raise ModelLoadError("mtp: an OpenVINO IR has no layer that predicts further tokens")
    if names_assistant(model):
        raise ModelLoadError(
            "draft_model: an assistant needs the hidden rows of its model, which an OpenVINO IR "
            "does not give"
        )
    if names_draft_head(model):
        raise ModelLoadError(
            "draft_model: an OpenVINO IR does not give the rows of its layers, which an EAGLE-3 "
            "head reads; serve its original checkpoint"
        )
    if model.task == "embed":
        raise ModelLoadError("task embed: an OpenVINO IR has no output for embeddings")
    if num_adapters(model):
        raise ModelLoadError(
            "lora, max_loras: an OpenVINO IR takes no adapters; serve its original checkpoint"
        )


def log_modes(directory: Path, config: HfConfig) -> None:
    """Logs the parts of a checkpoint of several modes that are served."""
    text = config.text_model()
    if text is not config:
        and_encoder = "" if vision_family(config) is None else " and the vision encoder"
        if hearing_family(config) is not None:
            and_encoder += " and the audio encoder"
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
        for matrix in read_matrices(index)
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


def load_preferred(entry: Path, builder: CheckpointBuilder) -> LanguageModel | None:
    """Loads the calibrated weights if they exist and are whole, else the weights of the entry
    itself.
    """
    preferred = preferred_path(entry)
    loaded = load_cached(preferred, builder)
    if preferred == entry:
        return loaded
    if loaded is None:
        return load_cached(entry, builder)
    logger.info("serving the calibrated weights %s", preferred)
    return loaded


def load_cached(entry: Path, builder: CheckpointBuilder) -> LanguageModel | None:
    """Builds the model from a cache entry; returns None if there is no entry or a broken one, which
    it deletes.
    """
    if not entry.exists():
        return None
    try:
        weights = CachedWeights(entry)
        model = builder.build_from_cache(weights)
    except (OSError, ValueError, KeyError, TypeError) as error:
        discard_entry(entry, f"it is broken: {error!r}")
        return None
    model = replace(model, mappings=(weights.mapping,), cache_entry=entry, identity=entry.name)
    return builder.join_draft_head(model)
