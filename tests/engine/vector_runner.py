"""Provides a runner of an encoder whose vectors describe its input.

A vector has the sum of a text's tokens, their number, the first token, and the place at which the
second text of a pair begins plus 100 times the number of its task.
"""

import threading

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import PoolingBatch
from ouzel.engine.pooling_engine import PoolingEngine
from ouzel.pooling import Task
from ouzel.types.engine_info import EngineInfo

FAILING_TOKEN_ID = 7  # a batch with this token fails
NOT_FINITE_TOKEN_ID = 6  # a text with this token gets a vector of NaN
VECTOR_SIZE = 4
may_run = threading.Event()  # while it is not set, runners wait
may_run.set()


class VectorRunner:
    def __init__(
        self,
        *,
        task: Task = "embed",
        vector_size: int = VECTOR_SIZE,
        max_model_len: int = 64,
        max_num_batched_tokens: int = 32,
        vocab_size: int = 260,
        max_texts: int = 8,
    ) -> None:
        self.batches: list[list[int]] = []  # lengths of the texts of each step
        self.info = EngineInfo(
            backend="fake",
            model_type="fake",
            device="none",
            weights="none",
            precision="f32",
            kv_cache_dtype="none",
            vocab_size=vocab_size,
            max_model_len=max_model_len,
            block_size=1,
            num_blocks=0,
            max_num_seqs=16,
            max_num_batched_tokens=max_num_batched_tokens,
            load_s=0.0,
            task=task,
            vector_size=vector_size,
            max_texts=max_texts,
            num_tasks=2,
        )

    def run(self, batch: PoolingBatch) -> list[NDArray[np.float32]]:
        may_run.wait()
        texts = np.split(batch.token_ids, batch.begins[1:-1])
        self.batches.append([len(text) for text in texts])
        if FAILING_TOKEN_ID in batch.token_ids:
            raise RuntimeError("a broken device")
        rows = [
            [text.sum(), len(text), text[0], second + 100 * task]
            for text, second, task in zip(texts, batch.second_begins, batch.tasks, strict=True)
        ]
        vectors = np.array(rows, np.float32)[:, : self.info.vector_size]
        vectors[[NOT_FINITE_TOKEN_ID in text for text in texts]] = np.nan
        return list(vectors)

    def close(self) -> None:
        pass


def create_embedder(options: dict[str, object]) -> PoolingEngine:
    """Makes an engine for `EngineSpec`. It reads only the option `max_model_len`."""
    length = options.get("max_model_len", 64)
    assert isinstance(length, int)
    return PoolingEngine(VectorRunner(max_model_len=length))


def create_choosy_scorer(options: dict[str, object]) -> PoolingEngine:
    """Makes an engine whose scores depend on each token and its place, for up to 64 tokens."""

    class ChoosyScorer(VectorRunner):
        def run(self, batch: PoolingBatch) -> list[NDArray[np.float32]]:
            texts = np.split(batch.token_ids, batch.begins[1:-1])
            return [
                np.array([np.dot(text, np.arange(1, len(text) + 1)) % 997], np.float32)
                for text in texts
            ]

    return PoolingEngine(ChoosyScorer(task="score", vector_size=1))


def create_scorer(options: dict[str, object]) -> PoolingEngine:
    """Makes an engine whose scores are numbers of tokens.

    It reads only the option `max_model_len`.
    """
    length = options.get("max_model_len", 256)
    assert isinstance(length, int)

    class Scorer(VectorRunner):
        def run(self, batch: PoolingBatch) -> list[NDArray[np.float32]]:
            return list(np.diff(batch.begins).astype(np.float32)[:, None])

    return PoolingEngine(Scorer(task="score", vector_size=1, max_model_len=length))
