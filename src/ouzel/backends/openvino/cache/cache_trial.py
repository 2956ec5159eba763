"""Measures the effect of a u8 KV cache on a model, with a short real text and an f32 cache to
compare.

The trial computes in f32. In bf16 two runs of the same model differ by more than the caches do. An
f16 cache with scaled keys, which changes nothing in exact numbers, moves SmolLM2-135M by a KL
divergence of 6e-3 in bf16, and by 8e-7 in f32.

If u8 moves the logits too far, the trial measures scales of the keys with an f32 cache at several
places of the context: a pair of channels that rotates slowly has other values at position 30,000
than at the start. The runners of a trial are made one after the other, so that no two of them hold
weights at the same time.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.cache.cache_verdict import LARGEST_DIVERGENCE, CacheVerdict
from ouzel.backends.openvino.checks.lone_sequence import lone_batch
from ouzel.backends.openvino.graph.key_scales import KeyScales
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.memory import give_back_pages
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig
from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.observability.progress import stage
from ouzel.tokenizer.huggingface import load_tokenizer

MAX_TOKENS = 512
MIN_TOKENS = 64
MIN_BLOCK_SIZE = 16  # tokens
NUM_COMPARED_ROWS = 128
NUM_PLACES = 4  # places in the context where parts of the text run to measure the keys
# Smallest scale relative to the median of a head, so that a channel that is always 0 has a scale,
# too.
# smallest scale relative to the median of a head: a channel that is always 0 has a scale, too
MIN_SCALE = 2.0**-12

Tokens = NDArray[np.int64]
Floats = NDArray[np.float32]

logger = logging.getLogger(__name__)


class MakeRunner(Protocol):
    def __call__(
        self,
        *,
        language_model: LanguageModel,
        model: ModelConfig,
        engine: EngineConfig,
        num_blocks: int,
    ) -> OpenVINORunner: ...


@dataclass(frozen=True, kw_only=True)
class CacheTrial:
    """A trial that tells whether a u8 KV cache changes the model's results too much.

    It runs a short text with an f32 cache and a u8 cache, and compares the results. If they differ
    too much, it measures scales of the keys and tries a u8 cache with these scales.
    """

    language_model: LanguageModel
    model: ModelConfig
    engine: EngineConfig
    max_model_len: int
    make_runner: MakeRunner

    def judge(self) -> CacheVerdict | None:
        """Runs the trial and returns its verdict.

        Returns None if there is no text to judge by, or if the logits are not finite.
        """
        token_ids = self.read_token_ids()
        if token_ids is None:
            return None
        with stage("choosing the type of the KV cache"):
            reference = self.run("f32", token_ids)
            plain = self.divergence(reference, self.run("u8", token_ids))
            if not np.isfinite(plain):
                return None  # the self-check says why such a model cannot be served
            if plain <= LARGEST_DIVERGENCE:
                return CacheVerdict(plain=plain)
            scales = self.measure_scales(token_ids)
            scaled = self.divergence(reference, self.run("u8", token_ids, scales))
        stored = {name: values.tolist() for name, values in scales.items()}
        return CacheVerdict(plain=plain, scaled=scaled, scales=stored)

    def read_token_ids(self) -> Tokens | None:
        """Returns the ids of the text by the model's own tokenizer, cut to the context.

        Returns None if there is no tokenizer or the text is too short.
        """
        text = (
            files("ouzel.backends.openvino").joinpath("trial_text.txt").read_text(encoding="utf-8")
        )
        try:
            read = load_tokenizer(Path(self.model.model)).encode(text, add_special_tokens=True)
        except (ModelLoadError, InvalidRequest) as error:
            logger.info("the KV cache stays u8, without a trial: %s", error)
            return None
        known = [token_id for token_id in read if token_id < self.language_model.vocab_size]
        token_ids = np.array(known[: min(MAX_TOKENS, self.max_model_len)], np.int64)
        if len(token_ids) < MIN_TOKENS:
            logger.info(
                "the KV cache stays u8, without a trial: %d tokens of text are too few",
                len(token_ids),
            )
            return None
        return token_ids

    def run(
        self, dtype: KvCacheDtype, token_ids: Tokens, scales: KeyScales | None = None
    ) -> Floats:
        """Returns the logits of up to 128 rows, spread over the text after its first quarter.

        A model that makes vectors gives the vectors of the prompts that end at these rows.
        """
        rows = np.linspace(len(token_ids) // 4, len(token_ids) - 1, NUM_COMPARED_ROWS).astype(
            np.int64
        )
        with self.runner(dtype, len(token_ids), scales) as runner:
            return run_text(runner, token_ids, np.unique(rows))

    def divergence(self, reference: Floats, other: Floats) -> float:
        """Returns the KL divergence of two results, or the cosine distance if they are vectors."""
        makes_vectors = self.language_model.vector_head is not None
        return (
            cosine_distance(reference, other) if makes_vectors else kl_divergence(reference, other)
        )

    def measure_scales(self, token_ids: Tokens) -> KeyScales:
        """Returns a scale for each channel, [heads, channels] by the name of the cache.

        The scale is the channel's largest absolute key, relative to the median of the channels of
        its head.
        """
        largest: dict[str, Floats] = {}
        parts = np.array_split(token_ids, NUM_PLACES)
        last = max(self.max_model_len - len(parts[0]), 0)
        with self.runner("f32", len(parts[0])) as runner:
            for part, begin in zip(
                parts, np.linspace(0, last, NUM_PLACES).astype(np.int64), strict=True
            ):
                run_text(runner, part, np.array([len(part) - 1]), begin=int(begin))
                for name, keys in runner.read_keys(len(part)).items():
                    here = np.abs(keys).max(axis=1)
                    largest[name] = np.maximum(largest.get(name, here), here)
        return {name: relative_to_median(values) for name, values in largest.items()}

    @contextmanager
    def runner(
        self, dtype: KvCacheDtype, num_tokens: int, scales: KeyScales | None = None
    ) -> Iterator[OpenVINORunner]:
        """Makes a runner in f32 with this type of cache for `num_tokens` tokens, and closes it."""
        language_model = replace(
            self.language_model, graph=self.language_model.graph.clone(), vision=None
        )
        language_model = language_model.with_key_scales(scales or {})
        model = msgspec.structs.replace(self.model, max_model_len=num_tokens)
        engine = msgspec.structs.replace(self.engine, precision="f32", kv_cache_dtype=dtype)
        with give_back_pages(language_model.mappings):
            num_blocks = -(-num_tokens // MIN_BLOCK_SIZE)
            runner = self.make_runner(
                language_model=language_model, model=model, engine=engine, num_blocks=num_blocks
            )
            try:
                yield runner
            finally:
                runner.close()


def run_text(runner: OpenVINORunner, token_ids: Tokens, rows: Tokens, *, begin: int = 0) -> Floats:
    """Runs the text as the only sequence, in the first blocks, at the positions from `begin` on."""
    return runner.run(lone_batch(runner.info, token_ids, rows, shift=begin)).copy()


def relative_to_median(largest: Floats) -> Floats:
    """Divides the largest keys by the median of their head, [heads, channels].

    A head without keys has scales of 1.
    """
    median = np.median(largest, axis=1, keepdims=True)
    relative = np.divide(largest, median, out=np.ones_like(largest), where=median > 0)
    return np.maximum(relative, np.float32(MIN_SCALE))


def kl_divergence(reference: Floats, other: Floats) -> float:
    """Returns the KL divergence, as the mean over the rows."""
    return float(np.mean([row_divergence(*rows) for rows in zip(reference, other, strict=True)]))


def row_divergence(reference: Floats, other: Floats) -> float:
    with np.errstate(all="ignore"):  # infinite logits give NaN
        own, others = log_softmax(reference), log_softmax(other)
        return float((np.exp(own) * (own - others)).sum())


def log_softmax(logits: Floats) -> NDArray[np.float64]:
    shifted: NDArray[np.float64] = logits.astype(np.float64) - logits.max()
    normalised: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return normalised


def cosine_distance(reference: Floats, other: Floats) -> float:
    """Returns one minus the cosine, as the mean over the rows."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(reference, axis=1) * np.linalg.norm(other, axis=1)
        return float(1 - ((reference * other).sum(axis=1) / lengths).mean())
