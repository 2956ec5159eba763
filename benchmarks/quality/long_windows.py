"""Measures the perplexity at the end of long windows for each type of the KV cache.

    uv run python -m benchmarks.quality.long_windows MODEL [--windows 2] [--length 8192]
        [--precisions auto f32] [--exact]

MODEL is a GGUF file or a directory. Windows of Python's help texts are read in chunks of 512
tokens, as the server reads a prompt, so that most keys and values come out of the cache. The second
half of each window is scored. Each line has the perplexity, its ratio to the perplexity with an f16
cache in the same precision, and the standard error of this ratio (the tokens are taken for
independent). `plain u8` has no scales of the keys; `u8` has them where the model needs them.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.quality.truth import log_softmax
from ouzel.backends.openvino import create_runner, load, make_runner, read_config
from ouzel.backends.openvino.checks.lone_sequence import lone_batch
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig, Precision
from ouzel.config.weights import WidthOption
from ouzel.engine.base import ModelRunner
from ouzel.model_store.model_directory import locate_model

_CHUNK = 512
_BLOCK = 32

TokenIds = NDArray[np.int64]


def make_windows(tokenizer: Tokenizer, number: int, length: int) -> list[TokenIds]:
    """Cuts windows, evenly spaced, out of Python's help texts. Each begins as a text does, with BOS
    for example.
    """
    text = "\n\n".join(topics[name] for name in sorted(topics))
    token_ids = tokenizer.encode(text, add_special_tokens=False).ids
    first = tokenizer.encode("", add_special_tokens=True).ids
    length -= len(first)
    starts = np.linspace(0, len(token_ids) - length, number + 1)[:-1].astype(int)
    return [np.array([*first, *token_ids[start : start + length]]) for start in starts]


def next_log_probs(runner: ModelRunner, window: TokenIds) -> NDArray[np.float64]:
    """Returns the log probability of each token of the second half but the first one."""
    middle = len(window) // 2
    found = []
    for begin in range(0, len(window), _CHUNK):
        end = min(begin + _CHUNK, len(window))
        positions = np.arange(begin, end)
        scored = positions[(positions >= middle) & (positions < len(window) - 1)]
        rows = scored - begin if len(scored) else np.array([end - begin - 1])
        logits = runner.run(lone_batch(runner.info, window[begin:end], rows, num_past=begin))
        if len(scored):
            found.append(log_softmax(logits)[np.arange(len(scored)), window[scored + 1]])
    return np.concatenate(found)


@dataclass(frozen=True)
class Setting:
    cache: KvCacheDtype
    precision: Precision
    weights: WidthOption = "auto"
    is_plain: bool = False  # the keys get no scales, even if the model needs them

    @property
    def name(self) -> str:
        return f"plain {self.cache}" if self.is_plain else self.cache

    def make_runner(self, directory: str, length: int) -> ModelRunner:
        """Makes a runner; only create_runner tries the effect of u8, and scales keys."""
        model = ModelConfig(model=directory, weights=self.weights)
        engine = EngineConfig(
            precision=self.precision, kv_cache_dtype=self.cache, max_num_batched_tokens=_CHUNK
        )
        num_blocks = -(-length // _BLOCK) + 2
        if not self.is_plain:
            return create_runner(model, engine, num_blocks=num_blocks)
        core, config = ov.Core(), read_config(Path(directory))
        language_model = load(core, Path(directory), config, model)
        return make_runner(core, language_model, config, model, engine, num_blocks=num_blocks)


def settings(precisions: Sequence[Precision], *, exact: bool) -> Iterator[Setting]:
    """Gives f16, the reference, first in each precision."""
    if exact:
        yield Setting("f32", "f32", "f32")
    for precision in precisions:
        yield Setting("f16", precision)
        yield Setting("u8", precision, is_plain=True)
        yield Setting("u8", precision)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--windows", type=int, default=2)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument(
        "--precisions", nargs="+", choices=get_args(Precision), default=["auto", "f32"]
    )
    parser.add_argument(
        "--exact", action="store_true", help="weights, inference and cache in f32, too"
    )
    arguments = parser.parse_args()
    directory = locate_model(arguments.model).directory
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    windows = make_windows(tokenizer, arguments.windows, arguments.length)
    reference: NDArray[np.float64] | None = None
    for setting in settings(arguments.precisions, exact=arguments.exact):
        runner = setting.make_runner(str(directory), arguments.length)
        found = np.concatenate([next_log_probs(runner, window) for window in windows])
        if setting.cache == "f16" or reference is None:
            reference = found
        losses = reference - found
        error = losses.std() / np.sqrt(len(losses))
        info = runner.info
        print(
            f"{setting.name:<9}{info.weights}, {info.precision}, {info.kv_cache_dtype}: "
            f"perplexity {np.exp(-found.mean()):.4f}, "
            f"{100 * np.expm1(losses.mean()):+.3f} % (standard error {100 * error:.3f} %)",
            flush=True,
        )
        runner.close()


if __name__ == "__main__":
    main()
