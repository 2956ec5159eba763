"""Wraps llama.cpp's low-level interface in arrays: a model, contexts, batches of sequences.

A context's memory has a part for each sequence, unless it is unified: then sequences with the same
beginning share cells.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # pointers of ctypes

import llama_cpp
import numpy as np
from numpy.typing import NDArray

BATCH_TOKENS = 2048  # most rows of one call; more are cut into several
MEMORY_UNIT = 256  # a sequence's part of the memory is a multiple of it

Tokens = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of a context; a trial finds the best."""

    flash_attention: bool
    quantised_cache: bool  # Q8_0 instead of F16; with flash attention only
    num_ubatch: int = 512

    def __str__(self) -> str:
        cache = "Q8_0" if self.quantised_cache else "F16"
        attention = "on" if self.flash_attention else "off"
        return f"flash attention {attention}, {cache} cache, n_ubatch {self.num_ubatch}"


@dataclass(frozen=True, slots=True)
class Rows:
    """The tokens of one call; each array has an element per token."""

    token_ids: Tokens
    positions: Tokens
    sequences: Tokens
    has_logits: NDArray[np.bool_]  # rows whose logits are returned

    def part(self, start: int) -> "Rows":
        """Returns the tokens of one call."""
        cut = slice(start, start + BATCH_TOKENS)
        return Rows(
            self.token_ids[cut],
            self.positions[cut],
            self.sequences[cut],
            self.has_logits[cut],
        )


class Model:
    """A loaded model. Raises RuntimeError if the file cannot be loaded."""

    def __init__(self, path: Path, num_threads: int) -> None:
        llama_cpp.llama_backend_init()
        llama_cpp.llama_log_set(_SILENT, ctypes.c_void_p(0))
        self.pointer: Any = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params()
        )
        if not self.pointer:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self.vocab: Any = llama_cpp.llama_model_get_vocab(self.pointer)
        self.vocab_size: int = llama_cpp.llama_vocab_n_tokens(self.vocab)
        self.num_threads = num_threads

    def close(self) -> None:
        llama_cpp.llama_model_free(self.pointer)


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _SILENT(level: int, text: bytes, _: ctypes.c_void_p) -> None:
    pass


class Context:
    """Memory for sequences of a given length. Raises RuntimeError if there is not enough."""

    def __init__(
        self,
        model: Model,
        setting: Setting,
        num_sequences: int,
        num_tokens: int,
        *,
        unified: bool = False,
    ) -> None:
        """With `unified`, `num_tokens` counts the tokens of all sequences."""
        self._model = model
        params = llama_cpp.llama_context_default_params()
        each = -(-num_tokens // MEMORY_UNIT) * MEMORY_UNIT
        params.n_ctx = each if unified else each * num_sequences
        params.n_batch, params.n_ubatch = BATCH_TOKENS, setting.num_ubatch
        params.n_seq_max, params.kv_unified = num_sequences, unified
        params.n_threads = params.n_threads_batch = model.num_threads
        params.flash_attn_type = int(setting.flash_attention)
        cache_type = (
            llama_cpp.GGML_TYPE_Q8_0 if setting.quantised_cache else llama_cpp.GGML_TYPE_F16
        )
        params.type_k = params.type_v = cache_type
        params.no_perf = True
        self.pointer: Any = llama_cpp.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise RuntimeError(f"llama.cpp makes no context with {setting}")
        self._memory = llama_cpp.llama_get_memory(self.pointer)
        self._batch = llama_cpp.llama_batch_init(BATCH_TOKENS, 0, 1)
        for index in range(BATCH_TOKENS):
            self._batch.n_seq_id[index] = 1
        fields = ("token", "pos", "logits")
        self._arrays = {
            name: np.ctypeslib.as_array(getattr(self._batch, name), (BATCH_TOKENS,))
            for name in fields
        }

    def decode(self, rows: Rows) -> NDArray[np.float32]:
        """Returns the logits [rows of `has_logits`, vocabulary].

        They may be a view that is valid until the next call. Rows beyond `BATCH_TOKENS` go into a
        further call. Raises RuntimeError if llama.cpp refuses.
        """
        starts = range(0, len(rows.token_ids), BATCH_TOKENS)
        if len(starts) == 1:
            return self._decode(rows)
        parts = (rows.part(start) for start in starts)
        return np.concatenate([self._decode(part).copy() for part in parts])

    def _decode(self, rows: Rows) -> NDArray[np.float32]:
        count, num_rows = len(rows.token_ids), int(rows.has_logits.sum())
        self._batch.n_tokens = count
        self._arrays["token"][:count] = rows.token_ids
        self._arrays["pos"][:count] = rows.positions
        self._arrays["logits"][:count] = rows.has_logits
        for index, sequence in enumerate(rows.sequences.tolist()):
            self._batch.seq_id[index][0] = sequence
        if status := llama_cpp.llama_decode(self.pointer, self._batch):
            raise RuntimeError(f"llama_decode of {count} rows gave {status}")
        if not num_rows:
            return np.empty((0, self._model.vocab_size), np.float32)
        pointer = llama_cpp.llama_get_logits(self.pointer)  # waits until they are there
        logits: NDArray[np.float32] = np.ctypeslib.as_array(
            pointer, (num_rows, self._model.vocab_size)
        )
        return logits

    def prefill(
        self, token_ids: list[int], sequence: int = 0, first_position: int = 0
    ) -> NDArray[np.float32]:
        """Computes a sequence's prompt, or more of it, and returns the last token's logits."""
        count = len(token_ids)
        has_logits = np.zeros(count, np.bool_)
        has_logits[-1] = True
        positions = np.arange(first_position, first_position + count, dtype=np.int32)
        sequences = np.full(count, sequence, np.int32)
        logits: NDArray[np.float32] = self.decode(
            Rows(np.array(token_ids, np.int32), positions, sequences, has_logits)
        )[-1]
        return logits

    def copy(self, source: int, destination: int) -> None:
        """Copies a sequence's memory, or shares its cells if the memory is unified."""
        llama_cpp.llama_memory_seq_cp(self._memory, source, destination, -1, -1)

    def forget(self, sequence: int, first_position: int) -> None:
        """Removes the tokens from `first_position` on."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, first_position, -1)

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self.pointer)
