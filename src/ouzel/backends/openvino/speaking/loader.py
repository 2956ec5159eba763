"""Makes a PoolingRunner from the directory of a model that reads texts aloud."""

import logging
import time
from pathlib import Path

import msgspec
import numpy as np

from ouzel.backends.openvino.adapters.adapter_options import num_adapters
from ouzel.backends.openvino.cache.kv_cache import context_length
from ouzel.backends.openvino.compilation import (
    check_options,
    compile_media_encoder,
    precision_name,
)
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.memory import give_back_pages
from ouzel.backends.openvino.runners.speaking_runner import SpeakingRunner
from ouzel.backends.openvino.speaking.graph import SpeakingGraph, load_speaking_graph
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.checkpoint.model_files import read_config_json
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import PoolingBatch
from ouzel.errors import ModelLoadError
from ouzel.kokoro_files.model_directory import MODEL_TYPE
from ouzel.kokoro_files.voices import read_voices
from ouzel.observability.progress import stage
from ouzel.pooling import Voice
from ouzel.types.engine_info import EngineInfo, VoiceShape

logger = logging.getLogger(__name__)

SAMPLE_RATE = 24_000
_CHECKED_PHONEMES = 12  # length of the text of the self-check
_LEAST_S, _MOST_S = 0.1, 60.0  # length of its sound in seconds
_LEAST_PEAK = 1e-4  # a sound without a larger sample is silence


def is_speaker(directory: Path) -> bool:
    """Tells whether the directory's model reads texts aloud."""
    return read_config_json(directory).get("model_type") == MODEL_TYPE


def create_speaking_runner(model: ModelConfig, engine: EngineConfig) -> SpeakingRunner:
    """Loads, compiles and checks the model in the local directory `model.model`.

    Raises ModelLoadError for every fault that the user can mend.
    """
    started = time.perf_counter()
    core, directory = ov.Core(), Path(model.model)
    config = read_hf_config(directory)
    refuse_speaker_options(model, engine, config)
    engine = choose_precision(engine)
    check_options(core, engine)
    with stage("reading the voices"):
        voices = read_voices(directory)
    with stage("reading the graph"):
        graph = load_speaking_graph(core, directory)
    with give_back_pages(graph.mappings):
        [compiled] = compile_media_encoder(core, [graph.graph], engine, "the model")
        shape = VoiceShape(sample_rate=SAMPLE_RATE, voices=tuple(voices))
        info = _make_info((config, model, engine), graph, precision_name(compiled, engine), shape)
        runner = SpeakingRunner(compiled, graph.ports, list(voices.values()), info)
        with stage("checking the model"):
            check_speech(runner)
    load_s = time.perf_counter() - started
    runner.info = msgspec.structs.replace(info, load_s=load_s)
    logger.info("loaded %s with %d voices in %.1f s", model.model, len(voices), load_s)
    return runner


def choose_precision(engine: EngineConfig) -> EngineConfig:
    """Returns the options with f32 in the place of auto.

    The model sums the phases of its voice over the sound; in bf16 they are wrong after moments.
    """
    return (
        msgspec.structs.replace(engine, precision="f32") if engine.precision == "auto" else engine
    )


def refuse_speaker_options(model: ModelConfig, engine: EngineConfig, config: HfConfig) -> None:
    """Raises ModelLoadError for options that a model that speaks does not have."""
    kind = f"a {config.model_type} reads texts aloud"
    if model.task not in ("auto", "speak"):
        raise ModelLoadError(f"task {model.task}: {kind} and does nothing else")
    if model.weights != "auto":
        raise ModelLoadError(
            f"weights must be auto, given {model.weights}: {kind}, with the weights of its graph "
            "as they are; give the ONNX file with other weights as the model"
        )
    if model.mtp or model.draft_model:
        raise ModelLoadError(f"mtp, draft_model propose tokens: {kind}")
    if num_adapters(model):
        raise ModelLoadError(f"lora, max_loras: {kind} and takes no adapters")
    if engine.precision == "int8":
        raise ModelLoadError(f"precision must be auto, f32, f16 or bf16, given int8: {kind}")


def find_max_phonemes(model: ModelConfig, config: HfConfig) -> int:
    """Returns the most phonemes of a text. Raises ModelLoadError for a limit of the user that is
    more than the model's.
    """
    own = config.size("max_position_embeddings")
    return context_length(model.max_model_len or own, own)


def _make_info(
    settings: tuple[HfConfig, ModelConfig, EngineConfig],
    graph: SpeakingGraph,
    precision: str,
    shape: VoiceShape,
) -> EngineInfo:
    config, model, engine = settings
    max_phonemes = find_max_phonemes(model, config)
    return EngineInfo(
        backend="openvino",
        model_type=config.model_type,
        device=engine.device,
        weights=graph.weights,
        precision=precision,
        kv_cache_dtype="none",
        vocab_size=config.size("vocab_size"),
        max_model_len=max_phonemes,
        block_size=1,
        num_blocks=0,
        max_num_seqs=1,  # a step speaks one text
        max_num_batched_tokens=max_phonemes,
        load_s=0.0,
        is_deterministic=engine.deterministic,
        task="speak",
        speech=shape,
    )


def check_speech(runner: SpeakingRunner) -> None:
    """Raises ModelLoadError unless a short text has a sound of a sensible length."""
    random = np.random.default_rng(0)
    token_ids = random.integers(1, runner.info.vocab_size, _CHECKED_PHONEMES)
    [samples] = runner.run(
        PoolingBatch(
            token_ids=token_ids.astype(np.int64),
            begins=np.array([0, _CHECKED_PHONEMES], np.int32),
            second_begins=np.array([_CHECKED_PHONEMES], np.int32),
            tasks=np.zeros(1, np.int32),
            visible_lens=np.array([_CHECKED_PHONEMES], np.int32),
            forms=("text",),
            voices=(Voice(voices=((0, 1.0),)),),
        )
    )
    duration_s = len(samples) / SAMPLE_RATE
    peak = float(np.abs(samples).max(initial=0))
    logger.debug("self-check: %.2f s of sound with a peak of %.3f", duration_s, peak)
    # written so that NaN fails
    if not (_LEAST_S <= duration_s <= _MOST_S and peak > _LEAST_PEAK and np.isfinite(peak)):
        raise ModelLoadError(
            f"self-check: the sound of {_CHECKED_PHONEMES} phonemes has {duration_s:.2f} s and a "
            f"peak of {peak:.4f}; it must have {_LEAST_S} to {_MOST_S} s and more than "
            f"{_LEAST_PEAK}. This model does not run correctly on this device"
        )
