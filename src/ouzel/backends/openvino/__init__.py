"""The OpenVINO backend: model directories -> a ModelRunner on a CPU or an Intel GPU."""

import logging
import time
from pathlib import Path

import openvino as ov

from ouzel.backends.openvino.compile import compile_graph, type_name
from ouzel.backends.openvino.hf_config import read_hf_config
from ouzel.backends.openvino.kv_cache import KvCache, cache_inputs, plan_cache
from ouzel.backends.openvino.loader import load_checkpoint
from ouzel.backends.openvino.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.types import EngineInfo

__all__ = ["create_runner"]

logger = logging.getLogger(__name__)


def create_runner(model: ModelConfig, engine: EngineConfig) -> ModelRunner:
    """model.model is a local directory. Raises ModelLoadError for everything that the user can mend."""
    started = time.perf_counter()
    directory = Path(model.model)
    if not directory.is_dir():
        raise ModelLoadError(f"{directory} is not a directory")
    config = read_hf_config(directory)
    language_model = load_checkpoint(directory, config, model.weights)
    compiled = compile_graph(ov.Core(), language_model.graph, engine)
    inputs = cache_inputs(compiled)
    max_model_len = model.max_model_len or language_model.max_positions
    plan = plan_cache(inputs, max_model_len, engine.max_num_seqs, engine.kv_cache_gib)
    info = EngineInfo(
        backend="openvino",
        model_type=config.model_type,
        device=engine.device,
        weights=model.weights,
        precision=type_name(compiled.get_property("INFERENCE_PRECISION_HINT")),
        kv_cache_dtype=type_name(inputs[0].dtype),
        vocab_size=language_model.vocab_size,
        max_model_len=plan.max_model_len,
        block_size=plan.block_size,
        num_blocks=plan.num_blocks,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        load_s=time.perf_counter() - started,
    )
    return OpenVINORunner(compiled, KvCache(inputs, plan.num_blocks), language_model.rope, info, language_model.arrays)
