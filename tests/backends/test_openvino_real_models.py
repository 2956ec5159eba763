"""Compares real models with transformers in float32.

The expected logits are stored; the limits are near the figures of docs/explanation/quality.md.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.quality import ours, sentences
from benchmarks.quality.figures import Figures, FiguresBuilder
from benchmarks.quality.packages import EMBEDDER, MODELS, RealModel, find, models_directory
from benchmarks.quality.stored_truth import load_stored, load_stored_vectors
from ouzel.model_store.model_directory import locate_model

pytestmark = pytest.mark.release(
    "real models, whose files `python -m benchmarks.quality --fetch` gets"
)


@dataclass(frozen=True)
class Limit:
    """The worst figures that pass. They exceed the measured figures, for other processors."""

    kl: float
    perplexity: float  # largest |ratio - 1| of the perplexity to transformers' perplexity
    num_greedy: float = 0


# About 1.5 times the figures of docs/explanation/quality.md, measured on a CPU without AMX, where
# the default is int8 inference. With AMX the default is bf16; its known figures are lower. The
# perplexity of a thousand tokens varies by chance, by about sqrt(2 * KL / 1000): 0.25 % for a KL
# of 3e-3.
LIMITS = {
    ("smollm2-135m", "default"): Limit(kl=5.5e-3, perplexity=0.01),
    ("smollm2-135m", "--kv-cache-dtype f16"): Limit(kl=5.5e-3, perplexity=0.01),
    ("smollm2-135m", "--kv-cache-dtype u8"): Limit(kl=6e-3, perplexity=0.01),
    ("gemma-3-270m", "default"): Limit(kl=3.8e-3, perplexity=0.007),
    ("gemma-3-270m", "--kv-cache-dtype f16"): Limit(kl=3.8e-3, perplexity=0.007),
    ("gemma-3-270m", "--kv-cache-dtype u8"): Limit(kl=4.3e-3, perplexity=0.007),
    ("qwen2.5-coder-0.5b", "default"): Limit(kl=8e-4, perplexity=0.004),
    ("qwen2.5-coder-0.5b", "--kv-cache-dtype f16"): Limit(kl=8e-4, perplexity=0.004),
    ("qwen2.5-coder-0.5b", "--kv-cache-dtype u8"): Limit(kl=1.3e-3, perplexity=0.005),
    ("smollm2-135m", ours.EXACT): Limit(kl=1e-6, perplexity=1e-4, num_greedy=48),
    ("gemma-3-270m", ours.EXACT): Limit(kl=7e-6, perplexity=4e-4, num_greedy=48),
    ("qwen2.5-coder-0.5b", ours.EXACT): Limit(kl=1e-6, perplexity=1e-4, num_greedy=48),
}
LEAST_COSINES = {
    "default": 0.9984,
    "--precision f32": 0.9992,
    "--weights f32 --precision f32": 0.99999,
}


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


def measure(model: RealModel, configuration: str, cache_dir: Path) -> Figures:
    """Measures the model. Raises NotFetched, with the command that fetches it, without its file."""
    directory = locate_model(str(find(model, models_directory())), str(cache_dir)).directory
    truth = load_stored(model)
    loaded = ours.load(
        directory, ours.CONFIGURATIONS[configuration], cache_dir, truth.windows.shape[1]
    )
    builder = FiguresBuilder(truth)
    for index, answers in enumerate(ours.answer(loaded, truth.windows)):
        builder.add(index, answers)
    loaded.close()
    return builder.build()


@pytest.mark.parametrize(("name", "configuration"), LIMITS)
def test_next_tokens_are_as_close_to_transformers_as_documented(
    name: str, configuration: str, cache_dir: Path
) -> None:
    limit = LIMITS[name, configuration]
    figures = measure(MODELS[name], configuration, cache_dir)
    assert figures.kl < limit.kl
    assert abs(figures.perplexity_ratio - 1) < limit.perplexity
    assert figures.num_greedy >= limit.num_greedy


@pytest.mark.parametrize("configuration", LEAST_COSINES)
def test_vectors_are_as_close_to_transformers_as_documented(
    configuration: str, cache_dir: Path
) -> None:
    directory = find(EMBEDDER, models_directory())
    options = sentences.CONFIGURATIONS[configuration]
    cosines = sentences.cosines(directory, load_stored_vectors(), options, cache_dir)
    assert cosines.min() > LEAST_COSINES[configuration]
