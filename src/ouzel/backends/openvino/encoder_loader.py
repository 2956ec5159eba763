"""Loads the checkpoint of an encoder as a graph, from the weight cache if possible."""

import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.encoders import Build
from ouzel.backends.openvino.loader import describe_weights, list_entry_files, plan_for
from ouzel.backends.openvino.weights.cache import (
    CachedWeights,
    EntryWriter,
    discard_entry,
    entry_path,
)
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.entry_use import note_use
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.source import (
    MemoryWriter,
    PartWriter,
    Tensors,
    Weights,
)
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

logger = logging.getLogger(__name__)


class EncoderLoader:
    """Loads one checkpoint by the function `build` of its model family."""

    def __init__(
        self,
        directory: Path,
        config: HfConfig,
        build: Build,
        plan: WeightPlan,
        num_labels: int,
        *,
        left_out: tuple[str, ...] = (),
    ) -> None:
        """A model with `num_labels` above 0 scores; one with 0 makes vectors.

        `left_out` has prefixes of tensors that the graph does not use. Raises ModelLoadError if the
        directory has no weights that can be read.
        """
        self._directory = directory
        self._config = config
        self._build = build
        self._stored = find_weights(directory, config)
        self._plan = plan_for(self._stored, plan)
        self._num_labels = num_labels
        self._left_out = left_out

    def load(self, cache_dir: str) -> EncoderModel:
        """Returns the model with weights from the cache, or compresses the weights and stores them
        first.

        Raises ModelLoadError if the checkpoint cannot be served.
        """
        files = list_entry_files(self._directory, self._stored)
        marks = (",recompress" * self._plan.recompress, ",score" * bool(self._num_labels))
        kind = f"{self._plan}{''.join(marks)}"
        entry = entry_path(cache_dir, self._directory, files, kind)
        if (cached := self._load_cached(entry)) is not None:
            note_use(entry, self._directory, files)
            return cached
        logger.info(
            "compressing the weights of %s to %s; the next start reads them from %s",
            self._directory,
            kind,
            entry,
        )
        tensors, _ = self._stored.open()
        try:
            num_bytes = sum(file.stat().st_size for file in files)
            with stage("compressing the weights", num_bytes), EntryWriter(entry) as writer:
                weights = self._compress(tensors, writer)
                self._build_from_files(tensors, weights)
                writer.commit(weights.index)
            cached = self._load_cached(entry)
            note_use(entry, self._directory, files)
        except OSError as error:
            logger.warning("compressed weights cannot be stored in %s: %s", entry.parent, error)
        if cached is None:
            return self._build_from_files(tensors, self._compress(tensors, MemoryWriter()))
        return replace(cached, is_entry_new=True)

    def measure(self) -> tuple[EncoderModel, MeasuredWeights]:
        """Builds the graph without reading the weights. Raises ModelLoadError like `load`."""
        tensors, _ = self._stored.open()
        weights = MeasuredWeights(tensors, recompress=self._plan.recompress)
        model = self._build_model(weights)
        self._refuse_unused(tensors, weights.used, model)
        return model, weights

    def _load_cached(self, entry: Path) -> EncoderModel | None:
        """Builds the model from a cache entry; returns None if there is no entry or a broken one,
        which it deletes.
        """
        if not entry.exists():
            return None
        try:
            weights = CachedWeights(entry)
            return replace(
                self._build_model(weights),
                weights=self._describe(weights.index),
                mappings=(weights.mapping,),
                cache_entry=entry,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            discard_entry(entry, f"it is broken: {error!r}")
            return None

    def _compress(self, tensors: Tensors, writer: PartWriter) -> CompressedWeights:
        return CompressedWeights(tensors, writer, recompress=self._plan.recompress)

    def _build_from_files(self, tensors: Tensors, weights: CompressedWeights) -> EncoderModel:
        model = self._build_model(weights)
        self._refuse_unused(tensors, weights.used, model)
        return replace(model, weights=self._describe(weights.index))

    def _describe(self, index: Mapping[str, Any]) -> str:
        return describe_weights(self._stored, self._plan, index)

    def _refuse_unused(self, tensors: Tensors, used: AbstractSet[str], model: EncoderModel) -> None:
        """Raises ModelLoadError if the checkpoint has a tensor that the model should use and does
        not.
        """
        for name in sorted(set(tensors.names()) - used):
            if not name.startswith((*model.left_out, *self._left_out)):
                raise ModelLoadError(
                    f"tensor {name} is in the checkpoint, "
                    f"but a {self._config.model_type} with this config.json has no such tensor"
                )

    def _build_model(self, weights: Weights) -> EncoderModel:
        try:
            return self._build(self._config, weights, self._plan, self._num_labels)
        except RuntimeError as error:
            raise ModelLoadError(
                f"OpenVINO could not build a {self._config.model_type} graph from this "
                f"config.json: {str(error).splitlines()[0]}"
            ) from error
