"""Gets Ouzel's answers in a configuration: width of weights, precision and type of the KV cache."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.quality.figures import Answers
from benchmarks.quality.truth import NUM_GREEDY, Floats, Ids, scored_positions
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, ModelRunner

# name of the configuration -> options of `ouzel serve`
CONFIGURATIONS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "--kv-cache-dtype f16": {"kv_cache_dtype": "f16"},
    "--kv-cache-dtype u8": {"kv_cache_dtype": "u8"},
    "--precision int8": {"precision": "int8"},
    "--precision int8 --kv-cache-dtype f16": {"precision": "int8", "kv_cache_dtype": "f16"},
    "--precision f32": {"precision": "f32"},
    "--weights bf16": {"weights": "bf16"},
    "--weights int8": {"weights": "int8"},
    "--weights int4": {"weights": "int4"},
    "--weights f32 --precision f32 --kv-cache-dtype f32": {
        "weights": "f32",
        "precision": "f32",
        "kv_cache_dtype": "f32",
    },
}
EXACT = "--weights f32 --precision f32 --kv-cache-dtype f32"


@dataclass(frozen=True)
class Loaded:
    """A runner, and the way in which it runs in the words of `ouzel inspect`: weights, precision,
    cache.
    """

    runner: ModelRunner
    description: str

    def answer(self, window: Ids) -> Answers:
        half = len(window) // 2
        logits = self._step(window, 0, scored_positions(len(window)))
        return Answers(logits, self._greedy(window[:half]))

    def close(self) -> None:
        self.runner.close()

    def _greedy(self, prompt: Ids) -> list[int]:
        token_ids = [int(self._step(prompt, 0, np.array([len(prompt) - 1])).argmax())]
        while len(token_ids) < NUM_GREEDY:
            begin = len(prompt) + len(token_ids) - 1
            token_ids.append(
                int(self._step(np.array(token_ids[-1:]), begin, np.array([0])).argmax())
            )
        return token_ids

    def _step(
        self, token_ids: Ids, begin: int, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    ) -> Floats:
        """Computes tokens of the only sequence from position `begin` on. Returns the logits of some
        rows.
        """
        info, end = self.runner.info, begin + len(token_ids)
        num_blocks = -(-end // info.block_size)
        slots = np.array([(1 if begin else 0, 1)], np.int32) if info.num_state_slots else None
        logits: Floats = self.runner.run(
            ForwardBatch(
                token_ids=token_ids.astype(np.int64),
                positions=np.arange(begin, end, dtype=np.int64),
                past_lens=np.array([begin], np.int32),
                subsequence_begins=np.array([0, len(token_ids)], np.int32),
                block_indices=np.arange(num_blocks, dtype=np.int32),
                block_indices_begins=np.array([0, num_blocks], np.int32),
                max_context_len=end,
                sampled_rows=rows.astype(np.int64),
                state_slots=slots,
            )
        ).copy()
        return logits


def load(directory: Path, options: Mapping[str, str], cache_dir: Path, window_len: int) -> Loaded:
    """Loads a model directory with options of `ouzel serve`. Raises ModelLoadError."""
    named = {key: value for key, value in options.items() if key in ModelConfig.__struct_fields__}
    model = msgspec.convert(
        {"model": str(directory), "cache_dir": str(cache_dir), **named}, ModelConfig
    )
    others = {key: value for key, value in options.items() if key not in named}
    engine = msgspec.convert({"max_num_batched_tokens": window_len, **others}, EngineConfig)
    num_blocks = -(-(window_len + NUM_GREEDY) // 32) + 2
    runner = create_runner(model, engine, num_blocks=num_blocks)
    info = runner.info
    return Loaded(runner, f"{info.weights}, {info.precision}, {info.kv_cache_dtype}")


def answer(loaded: Loaded, windows: Ids) -> Iterator[Answers]:
    for window in windows:
        yield loaded.answer(window)
