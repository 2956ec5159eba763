"""Declares the interfaces of engines (to the server) and of runners (to the device)."""

from __future__ import annotations  # so that the annotations do not import numpy

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    # `ouzel serve` starts the engine's process before it needs numpy, whose import takes 0.1 s.
    import numpy as np
    from numpy.typing import NDArray

from ouzel.pooling import VectorForm, Voice
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_messages import AdapterEvent
from ouzel.types.engine_request import AudioInput, EngineRequest, MediaInput
from ouzel.types.step_output import StepOutput


class AdapterNames(Protocol):
    """Takes commands to load and unload adapters; the steps of the engine carry them out."""

    def load(self, name: str, path: str) -> None:
        """Starts to load an adapter; steps go on meanwhile."""
        ...

    def unload(self, name: str) -> None:
        """Refuses new requests for the adapter and removes it after its last open request.

        Unknown names are no error.
        """
        ...

    def take_events(self) -> list[AdapterEvent]:
        """Returns the results of adapter commands since the last call."""
        ...


class Engine(Protocol):
    """Turns requests into outputs, a step at a time. One thread calls it.

    Every added request ends with exactly one final output per choice.
    """

    @property
    def info(self) -> EngineInfo: ...

    @property
    def adapters(self) -> AdapterNames: ...

    def add(self, request: EngineRequest) -> None:
        """Queues a request. A request that cannot run gets an output with finish_reason `refused`
        in the next step.

        Raises ValueError if the request_id is in use.
        """
        ...

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Ends a choice (None: all choices) with finish_reason `abort` and frees its blocks; the
        next step returns the final outputs.

        Unknown ids are no error.
        """
        ...

    def step(self) -> list[StepOutput]:
        """Schedules, runs one forward pass, and returns its outputs."""
        ...

    def has_unfinished(self) -> bool:
        """Tells whether another step is needed: for a request, or to load or clear an adapter."""
        ...

    def use_idle_time(self) -> bool:
        """Does a short piece of optional work; returns whether more remains.

        The loop calls it while no request is unfinished.
        """
        ...

    def stats(self) -> EngineStats: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """The input of one forward pass: all tokens of a step, sequence after sequence.

    Shapes: T tokens, B sequences, S sampled rows, N image tokens.
    """

    token_ids: NDArray[np.int64]  # [T]
    positions: NDArray[np.int64]  # [T]; [3, T] if the tokens of an image have a grid of positions
    past_lens: NDArray[np.int32]  # [B] tokens already in the cache
    subsequence_begins: NDArray[np.int32]  # [B+1] prefix sums of new tokens
    block_indices: NDArray[np.int32]  # [sum of block table lengths]
    block_indices_begins: NDArray[np.int32]  # [B+1]
    max_context_len: int  # largest past plus new
    # [S] indices into token_ids, in any order: logits are computed for these rows
    sampled_rows: NDArray[np.int64]
    # [B, 2]: the slot that a sequence reads, and the slot that it writes; None: no states
    state_slots: NDArray[np.int32] | None = None
    # [N] indices into token_ids of tokens that stand for images; None: no images in the batch
    image_rows: NDArray[np.int64] | None = None
    # [1 + number of further layers that read features, N, hidden size]
    image_features: NDArray[np.float32] | None = None
    # [T] position where the span of a two-way token begins (`state/two_way_tokens`), -1 for every
    # other token; None: no two-way token in the batch
    two_way_begins: NDArray[np.int32] | None = None
    # [T] adapter slot of each token, -1: no adapter; None: no adapter in the batch
    adapter_slots: NDArray[np.int32] | None = None
    # [T] the slot with the sound that a token attends to; None: the model reads no sound
    audio_slots: NDArray[np.int32] | None = None
    # [T, hidden size]: input of a prediction layer; None for every other model
    hidden_rows: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class PoolingBatch:
    """The input of one step of an encoder: B whole texts with T tokens in all."""

    token_ids: NDArray[np.int64]  # [T]
    begins: NDArray[np.int32]  # [B+1] prefix sums of tokens
    # [B] number of tokens before the second text of a pair; the length of the text if it is no pair
    second_begins: NDArray[np.int32]
    # [B] the task of each text, from 1 to the model's number of tasks; 0: none
    tasks: NDArray[np.int32]
    # [B] number of tokens that the tokens of the text attend to: its first ones
    visible_lens: NDArray[np.int32]
    forms: tuple[VectorForm, ...]  # [B] the form of each text's result
    voices: tuple[Voice | None, ...] = ()  # [B] the voice of each text; empty: the model is silent


class PoolingRunner(Protocol):
    """Computes a vector, scores, vectors of all tokens or the sound of each text; stores nothing
    between steps.
    """

    @property
    def info(self) -> EngineInfo: ...

    def run(self, batch: PoolingBatch) -> Sequence[NDArray[np.float32]]:
        """Returns an array of each text: [vector_size] for the form `text`,
        [tokens, token_vector_size] for `tokens`, [tokens] for `weights`. A model that speaks
        returns samples in [-1, 1].
        """
        ...

    def close(self) -> None: ...


class ModelRunner(Protocol):
    """Executes batches on a device; owns the tensors of the KV cache."""

    @property
    def info(self) -> EngineInfo: ...

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        """Computes logits [S, vocab_size]: a writable view of the device's output, valid until the
        next run.
        """
        ...

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Copies whole KV blocks in every layer. `sources` and `destinations` do not overlap."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class HiddenRunner(ModelRunner, Protocol):
    """A runner that exposes the hidden states of its last run.

    The head of the model makes logits from the rows of these states.
    """

    @property
    def hidden_rows(self) -> NDArray[np.float32]:
        """Returns the hidden states of the last run, valid until the next run.

        A model returns the rows of all tokens, [T, hidden size]; a prediction layer only the
        sampled rows, [S, hidden size].
        """
        ...


@runtime_checkable
class PredictingRunner(HiddenRunner, Protocol):
    """A runner of a model that may have a prediction layer (MTP), an EAGLE-3 head or an assistant.

    An EAGLE-3 head counts as a layer here. The layer's cache shares the model's blocks; an
    assistant reads the model's cache. The layer reads the model's hidden rows; they may be narrower
    or wider than the model.
    """

    @property
    def prediction(self) -> HiddenRunner | None:
        """Returns the runner of the layer or of the assistant; None if the model has none.

        Entry t of its batches: position t, the token at t + 1 or the features of its image, and the
        model's hidden row at t. A batch of an assistant has one row for each sequence: in the place
        of the last computed token, but at the next position, with the token there.
        """
        ...


@runtime_checkable
class ImageRunner(Protocol):
    """The image methods of a runner whose model reads images or hears sounds."""

    def encode(self, image: MediaInput) -> Generator[None, None, NDArray[np.float32]]:
        """Computes the features of an image or a sound, a part at each `next`.

        The result has the shape [1 + number of further layers that read features, rows, hidden
        size].
        """
        ...


@runtime_checkable
class AudioRunner(Protocol):
    """The audio methods of a runner whose decoder attends to sound (`info.audio`)."""

    def encode_audio(self, audio: AudioInput, slot: int) -> Generator[None]:
        """Computes the features of a window and writes their keys and values into a slot, a part at
        each `next`.

        Slots are in [0, info.audio.num_slots).
        """
        ...

    def read_cross_queries(self) -> NDArray[np.float32]:
        """Returns the queries of the alignment heads of all tokens of the last run, [T, columns].

        They are valid until the next run.
        """
        ...

    def align(
        self, queries: NDArray[np.float32], slot: int, num_frames: int
    ) -> NDArray[np.float32]:
        """Returns the alignment of tokens with the first frames of a slot, [tokens, frames]."""
        ...


@runtime_checkable
class AdapterRunner(Protocol):
    """The adapter methods of a runner with slots for LoRA adapters (`info.max_loras` > 0).

    The caller does not change a slot that a batch names before the batch has run.
    """

    def fill_adapter_slot(self, slot: int, path: str) -> bytes:
        """Reads an adapter into a slot; returns a digest of the adapter's content. Thread-safe.

        Raises ModelLoadError if the files are no adapter of this model; the caller then clears the
        slot.
        """
        ...

    def clear_adapter_slot(self, slot: int) -> None:
        """Frees the memory of the slot."""
        ...


class CacheRows(Protocol):
    """Reads and writes rows of one cache (KV blocks or state slots) as bytes. Thread-safe.

    The caller makes sure that no other thread writes the row, and that nobody reads a row during a
    write.
    """

    @property
    def row_bytes(self) -> int: ...

    def read(self, row: int, record: NDArray[np.uint8]) -> None:
        """Copies the row into `record` [row_bytes]."""
        ...

    def write(self, row: int, record: NDArray[np.uint8]) -> None: ...


@runtime_checkable
class StorableRunner(Protocol):
    """A runner that gives access to the content of its caches, to store it and load it again.

    Only a runner with an equal `info.cache_identity` can use the content.
    """

    @property
    def info(self) -> EngineInfo: ...

    @property
    def cache_rows(self) -> Mapping[str, CacheRows]:
        """Returns the rows by kind: `block`, and `state` if the model has states."""
        ...
