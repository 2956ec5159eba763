"""Chooses tokens with llama.cpp's samplers; numpy finds the most likely token, which is faster."""

import ctypes
from typing import Any, Protocol  # pointers of ctypes

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.llama_library import Context, Model
from benchmarks.comparison.schema import GBNF
from benchmarks.comparison.workloads import TEMPERATURE, TOP_P, Chooser

Logits = NDArray[np.float32]
CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class TokenChooser(Protocol):
    def choose(self, context: Context, logits: Logits) -> list[int]:
        """Returns a token per row; row i is sequence i, and row i of the context's last call."""
        ...

    def close(self) -> None: ...


class Greedy:
    def choose(self, context: Context, logits: Logits) -> list[int]:
        chosen: list[int] = logits.argmax(axis=1).tolist()
        return chosen

    def close(self) -> None:
        pass


class TopP:
    """Samples in llama.cpp's own order: top_p, then temperature, then the draw."""

    def __init__(self, num_sequences: int, seed: int) -> None:
        self._chains = [_chain(seed + i, TOP_P) for i in range(num_sequences)]

    def choose(self, context: Context, logits: Logits) -> list[int]:
        return [
            llama_cpp.llama_sampler_sample(self._chains[row], context.pointer, row)
            for row in range(len(logits))
        ]

    def close(self) -> None:
        for chain in self._chains:
            llama_cpp.llama_sampler_free(chain)


class BySchema:
    """Draws a token, and applies the grammar to all tokens only if it forbids the drawn one.

    llama-server does the same.
    """

    def __init__(self, model: Model, num_sequences: int, seed: int) -> None:
        first = llama_cpp.llama_sampler_init_grammar(model.vocab, GBNF.encode(), b"root")
        if not first:
            raise RuntimeError("llama.cpp does not take the schema's grammar")
        others = [llama_cpp.llama_sampler_clone(first) for _ in range(num_sequences - 1)]
        self._grammars = [first, *others]
        self._chains = [_chain(seed + i, None) for i in range(num_sequences)]
        self._all = np.zeros(model.vocab_size, CANDIDATE)
        self._read_stream = np.zeros(1, CANDIDATE)

    def choose(self, context: Context, logits: Logits) -> list[int]:
        return [self._choose(row, logits[row]) for row in range(len(logits))]

    def _choose(self, row: int, logits: Logits) -> int:
        token_id = self._drawn(row, logits, is_constrained=False)
        self._read_stream[0] = (token_id, 1.0, 0.0)
        llama_cpp.llama_sampler_apply(
            self._grammars[row], ctypes.byref(_candidates(self._read_stream))
        )
        if self._read_stream["logit"][0] == -np.inf:
            token_id = self._drawn(row, logits, is_constrained=True)
        llama_cpp.llama_sampler_accept(self._grammars[row], token_id)
        return token_id

    def _drawn(self, row: int, logits: Logits, *, is_constrained: bool) -> int:
        self._all["id"], self._all["logit"] = np.arange(len(logits)), logits
        candidates = _candidates(self._all)
        if is_constrained:
            llama_cpp.llama_sampler_apply(self._grammars[row], ctypes.byref(candidates))
        llama_cpp.llama_sampler_apply(self._chains[row], ctypes.byref(candidates))
        return int(candidates.data[candidates.selected].id)

    def close(self) -> None:
        for sampler in (*self._grammars, *self._chains):
            llama_cpp.llama_sampler_free(sampler)


def chooser(kind: Chooser, model: Model, num_sequences: int, seed: int) -> TokenChooser:
    match kind:
        case "greedy":
            return Greedy()
        case "top_p":
            return TopP(num_sequences, seed)
        case "schema":
            return BySchema(model, num_sequences, seed)


def _chain(seed: int, top_p: float | None) -> Any:
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    if top_p is not None:
        llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_top_p(top_p, 1))
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_temp(TEMPERATURE))
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_dist(seed))
    return chain


def _candidates(tokens: NDArray[np.void]) -> Any:
    pointer = tokens.ctypes.data_as(llama_cpp.llama_token_data_p)
    return llama_cpp.llama_token_data_array(pointer, len(tokens), -1, False)
