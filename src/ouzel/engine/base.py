"""The rest of Ouzel knows this much of an engine, and an engine knows this much of a device."""

from __future__ import annotations  # so that numpy, of which these are types, is not imported

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    # `ouzel serve` starts the engine's process before it needs numpy itself, which takes a tenth of a second.
    import numpy as np
    from numpy.typing import NDArray

from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_messages import AdapterEvent
from ouzel.types.engine_request import EngineRequest, ImageInput
from ouzel.types.step_output import StepOutput


class AdapterNames(Protocol):
    """It takes commands about adapters; what becomes of them, steps find out."""

    def load(self, name: str, path: str) -> None:
        """Begins to load one beside the steps."""
        ...

    def unload(self, name: str) -> None:
        """Lets no new request use it; it goes when the last one that does has ended. Unknown names are no error."""
        ...

    def take_events(self) -> list[AdapterEvent]:
        """Returns what has become of adapters since it was asked last."""
        ...


class Engine(Protocol):
    """One thread drives it. Every added request ends with exactly one final output per choice."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def adapters(self) -> AdapterNames: ...

    def add(self, request: EngineRequest) -> None:
        """Queues a request. One that cannot run gets an output with finish_reason `refused` from the next step.

        Raises ValueError when the request_id is in use.
        """
        ...

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Ends a choice (all with None) with finish_reason `abort` at the next step, which frees its blocks.

        Unknown ids are no error.
        """
        ...

    def step(self) -> list[StepOutput]:
        """Schedules, runs one forward pass, and returns what it gives."""
        ...

    def has_unfinished(self) -> bool:
        """Tells whether there is to be another step, for a request or to load or clear an adapter."""
        ...

    def use_idle_time(self) -> bool:
        """Is called while nothing is unfinished: does something short that helps later; tells whether there is more."""
        ...

    def stats(self) -> EngineStats: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """It holds all tokens of one step, sequence after sequence (T tokens, B sequences, S sampled rows)."""

    token_ids: NDArray[np.int64]  # [T]
    positions: NDArray[np.int64]  # [T], or [3, T] where those of an image are a grid
    past_lens: NDArray[np.int32]  # [B] tokens already in the cache
    subsequence_begins: NDArray[np.int32]  # [B+1] prefix sums of new tokens
    block_indices: NDArray[np.int32]  # [sum of block table lengths]
    block_indices_begins: NDArray[np.int32]  # [B+1]
    max_context_len: int  # largest past plus new
    sampled_rows: NDArray[np.int64]  # [S] rows of token_ids whose logits are wanted, in any order
    # [B, 2] that are read and written; None: the model has no states
    state_slots: NDArray[np.int32] | None = None
    # [N] of token_ids that stand for images; None: no image is among them
    image_rows: NDArray[np.int64] | None = None
    # [1 + what enters further layers, N, hidden size]
    image_features: NDArray[np.float32] | None = None
    # [T] of each row's adapter, -1: none; None: none at all
    adapter_slots: NDArray[np.int32] | None = None
    # [T, hidden size] that a layer for further tokens takes, no other
    hidden_rows: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class PoolingBatch:
    """It holds all texts of one step, one after the other (T tokens, B texts)."""

    token_ids: NDArray[np.int64]  # [T]
    begins: NDArray[np.int32]  # [B+1] prefix sums of tokens
    second_begins: NDArray[
        np.int32
    ]  # [B] tokens of a text before the second one of a pair; all of them without one


class PoolingRunner(Protocol):
    """Makes a vector of each text, or scores; nothing of a text outlives the step."""

    @property
    def info(self) -> EngineInfo: ...

    def run(self, batch: PoolingBatch) -> NDArray[np.float32]:
        """Returns [B, vector_size]."""
        ...

    def close(self) -> None: ...


class ModelRunner(Protocol):
    """Executes batches on a device and owns the KV cache tensors."""

    @property
    def info(self) -> EngineInfo: ...

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        """Returns logits [S, vocab_size], a view of the device's output: valid, and writable, until the next run."""
        ...

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Copies whole KV blocks in every layer; sources and destinations do not overlap."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class HiddenRunner(ModelRunner, Protocol):
    """It shows the rows of which its head makes logits."""

    @property
    def hidden_rows(self) -> NDArray[np.float32]:
        """Returns those of the last run, valid until the next: a model's of all tokens, [T, hidden size], a layer's for
        further tokens of the sampled ones, [S, hidden size]."""
        ...


@runtime_checkable
class PredictingRunner(HiddenRunner, Protocol):
    """Its model has a layer for further tokens, whose cache is in the blocks of the model's."""

    @property
    def prediction(self) -> HiddenRunner | None:
        """Its batches have entries: position t, the token behind it, and the hidden row of the one there."""
        ...


@runtime_checkable
class ImageRunner(Protocol):
    """A runner is this, too, where its model sees."""

    def encode(self, image: ImageInput) -> Generator[None, None, NDArray[np.float32]]:
        """Computes an image's features [1 + what enters further layers, rows, hidden size], a part at each `next`."""
        ...


@runtime_checkable
class AdapterRunner(Protocol):
    """A runner is this, too, where it has slots for adapters: `info.max_loras` of them, where that is not 0.

    A slot that a batch names is left alone until that has run.
    """

    def fill_adapter_slot(self, slot: int, path: str) -> bytes:
        """Reads an adapter and returns a digest of what it is: equal ones do the same. Any thread may call it.

        Raises ModelLoadError where it is none for this model; the slot is to be cleared then.
        """
        ...

    def clear_adapter_slot(self, slot: int) -> None:
        """Gives the slot's memory back."""
        ...


class CacheRows(Protocol):
    """The rows of one of a runner's caches, blocks or slots for states, are bytes; any thread may ask for them.

    Whoever asks sees to it that nobody else writes the row, or reads one that is written.
    """

    @property
    def row_bytes(self) -> int: ...

    def read(self, row: int, record: NDArray[np.uint8]) -> None:
        """Copies the row into `record` [row_bytes]."""
        ...

    def write(self, row: int, record: NDArray[np.uint8]) -> None: ...


@runtime_checkable
class StorableRunner(Protocol):
    """A runner is this, too, where its caches' content can outlive it; `info.cache_identity` says for whom."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def cache_rows(self) -> Mapping[str, CacheRows]:
        """Has `block` and, where the model has states, `state`."""
        ...
