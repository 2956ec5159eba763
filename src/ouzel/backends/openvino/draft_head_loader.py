"""Loads an EAGLE-3 head beside its model, from the weight cache if possible.

A head has a cache entry of its own: the entry of the model is the same with and without it. Heads
are published with copies of the model's embedding, which they were trained with. Such a copy takes
no memory here, and another embedding is the head's own.
"""

import logging
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.drafts import names_draft_head
from ouzel.backends.openvino.graph.draft_head import PREFIXES, DraftHeadParts
from ouzel.backends.openvino.graph.draft_head_shape import read_draft_head_shape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.weights.cache import (
    PACKED,
    CachedWeights,
    EntryWriter,
    discard_entry,
    entry_path,
)
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.encodings import AUTO_WIDTH, Encoding, Parts
from ouzel.backends.openvino.weights.entry_use import note_use
from ouzel.backends.openvino.weights.leftovers import EMBEDDING, HEADLESS_PREFIXES, are_same
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import (
    MemoryWriter,
    StoredForm,
    Tensor,
    Tensors,
    Weights,
)
from ouzel.backends.openvino.weights.stored import StoredWeights, find_weights
from ouzel.checkpoint.draft_head import read_draft_head_config
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import ModelConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

logger = logging.getLogger(__name__)

_IDS = "d2t"  # the model's id of a token, minus the head's
_UNUSED = ("t2d",)  # the tokens that have an id of the head, which `d2t` says too
_EMBEDDING = "embed_tokens.weight"


@dataclass(frozen=True)
class LoadedDraftHead:
    """A head with its weights."""

    parts: DraftHeadParts
    mappings: tuple[mmap.mmap, ...] = ()  # the file that holds the weights
    unmapped_bytes: int = 0  # the bytes of the weights if no file holds them

    def join(self, model: LanguageModel) -> LanguageModel:
        """Returns a model that was built with the head, with the file or bytes of the head."""
        return replace(
            model,
            mappings=model.mappings + self.mappings,
            unmapped_bytes=model.unmapped_bytes + self.unmapped_bytes,
        )


def load_draft_head(model: ModelConfig, config: HfConfig, *, packs: bool) -> LoadedDraftHead | None:
    """Returns the EAGLE-3 head that `model.draft_model` names; None if it names none, or a model.

    `config` is the model's. Raises ModelLoadError if the head does not fit the model.
    """
    if not names_draft_head(model):
        return None
    source = _Source(Path(model.draft_model), Path(model.model), config)
    plan = source.plan(model.weight_plan)
    files = [
        *(source.directory / "config.json", *source.stored.files),
        *(source.model_directory / "config.json", *source.model_weights.files),
    ]
    kind = f"{plan},draft{PACKED * packs}"
    entry = entry_path(model.cache_dir, source.directory, files, kind)
    loaded = _load_entry(entry, source, plan)
    if loaded is None:
        loaded = _make_entry(entry, source, plan, packs=packs)
    note_use(entry, source.directory, files)
    logger.info("drafting with the EAGLE-3 head %s", source.directory)
    return loaded


def measure_draft_head(
    model: ModelConfig, config: HfConfig, *, packs: bool
) -> tuple[DraftHeadParts, MeasuredWeights] | None:
    """Returns the head as `load_draft_head` does, with weights that are not compressed.

    An embedding of the head is read, and compared with the model's.
    """
    if not names_draft_head(model):
        return None
    source = _Source(Path(model.draft_model), Path(model.model), config)
    return _measure(source, source.open(), source.plan(model.weight_plan), packs=packs)


class _Source:
    """The files of a head, and of the model that it drafts for."""

    def __init__(self, directory: Path, model_directory: Path, config: HfConfig) -> None:
        self.directory, self.model_directory = directory, model_directory
        own, text = read_draft_head_config(directory), config.text_model()
        self.shape = read_draft_head_shape(own, text)
        self.stored: StoredWeights = find_weights(directory, own)
        self.model_weights = find_weights(model_directory, text)

    def plan(self, plan: WeightPlan) -> WeightPlan:
        """Returns the user's plan; a head is too small to keep widths of its own."""
        return plan if self.stored.compressed_as else plan.with_auto(AUTO_WIDTH)

    def open(self) -> Tensors:
        """Opens the head's tensors, without a copy of the model's embedding."""
        tensors, _ = self.stored.open()
        shape = (self.shape.vocab_size, self.shape.hidden_size)
        for name in (prefix + _EMBEDDING for prefix in PREFIXES):
            if name in tensors.names() and self._is_copy(tensors, Tensor(name, shape)):
                return _WithoutTensor(tensors, name)
        return tensors

    def parts(self, weights: Weights, plan: WeightPlan, identity: str) -> DraftHeadParts:
        """Returns the head with these weights. Raises ModelLoadError if it lacks an embedding."""
        size, model_size = self.shape.hidden_size, self.shape.model_size
        if size != model_size and not any(weights.has(each + _EMBEDDING) for each in PREFIXES):
            raise ModelLoadError(
                f"draft_model: {_EMBEDDING} is missing: a head of hidden size {size} needs an "
                f"embedding of its own beside a model of {model_size}"
            )
        return DraftHeadParts(
            shape=self.shape,
            weights=weights,
            plan=plan,
            token_ids=self._read_token_ids(),
            identity=identity,
        )

    def _is_copy(self, tensors: Tensors, tensor: Tensor) -> bool:
        if self.shape.hidden_size != self.shape.model_size:
            return False
        own, _ = self.model_weights.open()
        names = [EMBEDDING.replace("model.", prefix) for prefix in ("model.", *HEADLESS_PREFIXES)]
        for name in names:
            if name in own.names():
                return are_same((own, replace(tensor, name=name)), (tensors, tensor))
        return False

    def _read_token_ids(self) -> NDArray[np.int64] | None:
        """Returns the model's ids of the head's tokens. Raises ModelLoadError for wrong ids."""
        num_ids, vocab_size = self.shape.draft_vocab_size, self.shape.vocab_size
        checkpoint = Checkpoint(self.directory)
        if checkpoint.find(_IDS) is None:
            if num_ids == vocab_size:
                return None
            raise ModelLoadError(
                f"draft_model: the head proposes {num_ids} of {vocab_size} tokens "
                f"(draft_vocab_size), but its files have no tensor {_IDS} with their ids"
            )
        ids = checkpoint.read(_IDS, (num_ids,), "I64", "I32").astype(np.int64) + np.arange(num_ids)
        if ids.min() < 0 or ids.max() >= vocab_size or len(np.unique(ids)) < num_ids:
            raise ModelLoadError(
                f"draft_model: tensor {_IDS} must lead to {num_ids} different ids below "
                f"{vocab_size}, found ids from {ids.min()} to {ids.max()}"
            )
        return ids


class _WithoutTensor:
    """Hides a tensor; implements `Tensors`."""

    def __init__(self, tensors: Tensors, name: str) -> None:
        self._tensors, self._name = tensors, name

    def names(self) -> Iterable[str]:
        return [name for name in self._tensors.names() if name != self._name]

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        return self._tensors.stored_encoding(tensor)

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        return self._tensors.stored_form(tensor)

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        return self._tensors.rows(tensor)

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        return self._tensors.parts(tensor)


def _load_entry(entry: Path, source: _Source, plan: WeightPlan) -> LoadedDraftHead | None:
    """Loads a cache entry; returns None if there is none or a broken one, which it deletes."""
    if not entry.exists():
        return None
    try:
        weights = CachedWeights(entry)
        parts = source.parts(weights, plan, entry.name)
        parts.use_all()
    except (OSError, ValueError, KeyError, TypeError) as error:
        discard_entry(entry, f"it is broken: {error!r}")
        return None
    return LoadedDraftHead(parts, mappings=(weights.mapping,))


def _make_entry(entry: Path, source: _Source, plan: WeightPlan, *, packs: bool) -> LoadedDraftHead:
    """Compresses the weights and stores them; keeps them in memory if they cannot be stored."""
    tensors = source.open()
    # refuses wrong tensors before the compression
    _, measured = _measure(source, tensors, plan, packs=packs)
    num_bytes = sum(file.stat().st_size for file in source.stored.files)
    loaded = None
    try:
        with stage("compressing the EAGLE-3 head", num_bytes), EntryWriter(entry) as writer:
            weights = CompressedWeights(tensors, writer, recompress=plan.recompress, packs=packs)
            source.parts(weights, plan, entry.name).use_all()
            writer.commit(weights.index)
        loaded = _load_entry(entry, source, plan)
    except OSError as error:
        logger.warning("compressed weights cannot be stored in %s: %s", entry.parent, error)
    if loaded is not None:
        return loaded
    weights = CompressedWeights(tensors, MemoryWriter(), recompress=plan.recompress, packs=packs)
    parts = source.parts(weights, plan, entry.name)
    return LoadedDraftHead(parts, unmapped_bytes=measured.bytes_by_encoding.total())


def _measure(
    source: _Source, tensors: Tensors, plan: WeightPlan, *, packs: bool
) -> tuple[DraftHeadParts, MeasuredWeights]:
    """Returns the head with the sizes of its weights.

    Raises ModelLoadError if it lacks a tensor, or has a tensor that it should use and does not.
    """
    weights = MeasuredWeights(tensors, recompress=plan.recompress, packs=packs)
    parts = source.parts(weights, plan, "")
    parts.use_all()
    _refuse_leftovers(tensors, weights.used)
    return parts, weights


def _refuse_leftovers(tensors: Tensors, used: Iterable[str]) -> None:
    """Raises ModelLoadError if the head has a tensor that it should use and does not."""
    for name in sorted({*tensors.names()} - {*used, _IDS, *_UNUSED}):
        raise ModelLoadError(
            f"draft_model: tensor {name} is in the checkpoint, but an EAGLE-3 head with this "
            "config.json has no such tensor"
        )
