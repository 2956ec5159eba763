"""Loads the EAGLE-3 heads of golden_eagle/ beside their models, and runs them."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.flat_batch import Span, build_flat_batch

HEADS = Path(__file__).parent / "golden_eagle"
MODELS = Path(__file__).parent / "golden"
# The model of each head.
TARGETS = {
    "llama-specforge": "llama",
    "qwen3-eagle": "qwen3",
    "gpt-oss-speculators": "gpt-oss",
    "qwen3-parts": "qwen3",
}


def copy_head_as_ir(directory: Path) -> Path:
    """Copies an EAGLE-3 head and names its weights as an OpenVINO IR."""
    copytree(HEADS / "llama-specforge", directory)
    for name in ("openvino_model.xml", "openvino_model.bin"):
        (directory / name).write_text("")
    return directory


def load(
    head: Path | None,
    model: Path,
    cache_dir: Path,
    *,
    num_blocks: int | None = None,
    max_loras: int | None = None,
    deterministic: bool = False,
) -> OpenVINORunner:
    runner = create_runner(
        ModelConfig(
            model=str(model),
            cache_dir=str(cache_dir),
            weights="f32",
            draft_model="" if head is None else str(head),
            max_loras=max_loras,
        ),
        EngineConfig(
            precision="f32",
            kv_cache_dtype="f32",
            kv_cache_gib=0.02,
            max_num_seqs=6,
            max_num_batched_tokens=48,
            deterministic=deterministic,
        ),
        num_blocks=num_blocks,
    )
    assert isinstance(runner, OpenVINORunner)
    return runner


def run_entries(
    runner: OpenVINORunner, spans: list[Span], rows: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Runs entries of the head; returns the logits of all of them."""
    assert runner.prediction is not None
    batch = build_flat_batch(spans, np.arange(len(rows)), runner.info.block_size)
    return runner.prediction.run(replace(batch, hidden_rows=rows)).copy()
