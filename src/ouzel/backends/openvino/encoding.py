"""Makes a PoolingRunner from the directory of an encoder."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ouzel.backends.openvino.adapters.adapter_options import num_adapters
from ouzel.backends.openvino.cache.kv_cache import context_length
from ouzel.backends.openvino.compilation import check_options, compile_encoder, precision_name
from ouzel.backends.openvino.encoder_loader import EncoderLoader
from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.encoders import encoder_family, is_decoder
from ouzel.backends.openvino.ir import is_ir_directory
from ouzel.backends.openvino.ir.whole_texts import load_whole_texts, reads_whole_texts
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.memory import give_back_pages
from ouzel.backends.openvino.pooling import VectorPooling
from ouzel.backends.openvino.runners.encoder_runner import EncoderRunner
from ouzel.backends.openvino.task import find_task, read_architecture, read_num_labels
from ouzel.backends.openvino.token_heads import list_forms, read_token_heads
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.checkpoint.late_interaction import HF_COLBERT
from ouzel.checkpoint.sentence_files import ModelKind, SentenceFiles, read_sentence_files
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import PoolingBatch, PoolingRunner
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage
from ouzel.pooling import VectorForm
from ouzel.types.engine_info import EngineInfo

logger = logging.getLogger(__name__)

# texts in one request; a larger request is split over several messages to the engine
_MAX_TEXTS = 64
_CHECKED_TOKENS = (5, 13)  # lengths of the two texts of the self-check, in tokens
_LARGEST_CHANGE = 0.2  # largest change of a vector by its neighbours that rounding explains


def is_encoder(directory: Path) -> bool:
    """Tells whether the directory's model is an encoder, which reads a whole text at once."""
    if not (directory / "config.json").is_file():
        return False
    config = read_hf_config(directory)
    if is_ir_directory(directory):
        return reads_whole_texts(directory, read_architecture(config))
    return encoder_family(config) is not None


def create_encoder_runner(model: ModelConfig, engine: EngineConfig) -> PoolingRunner:
    """Loads, compiles and checks the encoder in the local directory `model.model`.

    Raises ModelLoadError for every fault that the user can mend.
    """
    started = time.perf_counter()
    core, directory = ov.Core(), Path(model.model)
    check_options(core, engine)
    config = read_hf_config(directory)
    loaded = load_encoder(core, directory, config, model)
    files = read_encoder_files(directory, config, model)
    with give_back_pages(loaded.mappings):
        compiled = compile_encoder(core, loaded.graph, loaded.hidden_size, engine)
        forms: tuple[VectorForm, ...] = (
            ("text",) if loaded.num_labels else list_forms(directory, files)
        )
        precision = precision_name(compiled, engine)
        facts = _Facts(config, loaded, model, engine, precision, files.max_tokens, forms)
        with stage("loading and checking the model"):
            runner = _checked_runner(compiled, files, facts)
    load_s = time.perf_counter() - started
    runner.info = msgspec.structs.replace(runner.info, load_s=load_s)
    logger.info(
        "loaded %s (%s, %s) in %.1f s", model.model, config.model_type, loaded.weights, load_s
    )
    return runner


def load_encoder(
    core: ov.Core, directory: Path, config: HfConfig, model: ModelConfig
) -> EncoderModel:
    """Loads the encoder from a checkpoint or from an IR. Raises ModelLoadError."""
    if not is_ir_directory(directory):
        return encoder_loader(directory, config, model).load(model.cache_dir)
    _refuse_options(model, config)
    loaded = load_whole_texts(core, directory, config)
    task = "score" if loaded.num_labels else "embed"
    if model.task not in ("auto", task):
        raise ModelLoadError(
            f"task {model.task}: the graph of this OpenVINO IR is made for the task {task}"
        )
    return loaded


def read_encoder_files(directory: Path, config: HfConfig, model: ModelConfig) -> SentenceFiles:
    """Reads the files of sentence-transformers. Raises ModelLoadError."""
    kind: ModelKind = "decoder" if is_decoder(config) else "encoder"
    return read_sentence_files(directory, kind, pooling=model.pooling_mode)


def encoder_loader(directory: Path, config: HfConfig, model: ModelConfig) -> EncoderLoader:
    """Returns the loader of a checkpoint. Raises ModelLoadError for an option that an encoder
    cannot take.
    """
    _refuse_options(model, config)
    build = encoder_family(config)
    assert build is not None, "create_encoder_runner is called for encoders only"
    num_labels = (
        read_num_labels(config) if find_task(config, directory, model.task) == "score" else 0
    )
    has_head = read_architecture(config) == HF_COLBERT
    return EncoderLoader(
        directory,
        config,
        build,
        model.weight_plan,
        num_labels,
        left_out=("linear.",) if has_head else (),
    )


def _refuse_options(model: ModelConfig, config: HfConfig) -> None:
    if model.task == "generate":
        raise ModelLoadError(
            f"task generate: a {config.model_type} is an encoder and generates no tokens"
        )
    if model.mtp or model.draft_model:
        raise ModelLoadError(
            f"mtp and draft_model propose tokens: a {config.model_type} generates no tokens"
        )
    if num_adapters(model):
        raise ModelLoadError(
            f"lora, max_loras: a {config.model_type} is an encoder and takes no adapters"
        )


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts of an engine that are known before its runner exists."""

    config: HfConfig
    loaded: EncoderModel
    model: ModelConfig
    engine: EngineConfig
    precision: str
    max_tokens: int | None  # longest text in tokens, by the model's files
    forms: tuple[VectorForm, ...]

    def info(self, vector_size: int, token_vector_size: int) -> EngineInfo:
        loaded, engine = self.loaded, self.engine
        return EngineInfo(
            backend="openvino",
            model_type=self.config.model_type,
            device=engine.device,
            weights=loaded.weights,
            precision=self.precision,
            kv_cache_dtype="none",
            vocab_size=loaded.vocab_size,
            max_model_len=find_max_text_len(self.model, loaded, self.max_tokens),
            block_size=1,
            num_blocks=0,
            max_num_seqs=1 if engine.deterministic else engine.max_num_seqs,  # one text, one shape
            is_deterministic=engine.deterministic,
            max_num_batched_tokens=engine.max_num_batched_tokens,
            load_s=0.0,
            is_causal=is_decoder(self.config),
            task="score" if loaded.num_labels else "embed",
            vector_size=vector_size,
            forms=self.forms,
            token_vector_size=token_vector_size,
            num_tasks=loaded.num_tasks,
            max_texts=_MAX_TEXTS,
        )


def find_max_text_len(model: ModelConfig, loaded: EncoderModel, max_tokens: int | None) -> int:
    """Returns the most tokens of a text: the user's limit, else the limit of the model's files.

    Raises ModelLoadError if the user's limit is more than the model's positions.
    """
    limit = model.max_model_len or min(max_tokens or loaded.max_positions, loaded.max_positions)
    return context_length(limit, loaded.max_positions)


def _checked_runner(
    compiled: ov.CompiledModel, files: SentenceFiles, facts: _Facts
) -> EncoderRunner:
    """Makes the runner and checks it. Raises ModelLoadError if the check fails."""
    loaded, directory = facts.loaded, Path(facts.model.model)
    pooling, heads, size, token_size = None, None, loaded.num_labels, 0
    if not loaded.num_labels:
        heads = read_token_heads(directory, files, loaded.hidden_size)
        size = token_size = heads.vector_size
    if not loaded.num_labels and files.makes_whole_vectors:
        pooling = VectorPooling(files, loaded.hidden_size)
        size = pooling.vector_size
    info = facts.info(size, token_size if "tokens" in facts.forms else 0)
    runner = EncoderRunner(compiled, loaded, info, pooling, heads)
    check_encoder(runner)
    return runner


def check_encoder(runner: PoolingRunner) -> None:
    """Raises ModelLoadError if a text gets another vector in a batch than alone."""
    random = np.random.default_rng(0)
    lens = [min(length, runner.info.max_model_len) for length in _CHECKED_TOKENS]
    texts = [random.integers(0, runner.info.vocab_size, length) for length in lens]
    form = runner.info.forms[0]
    together = np.concatenate(runner.run(_make_batch(texts, form)))
    alone = np.concatenate(
        [vector for text in texts for vector in runner.run(_make_batch([text], form))]
    )
    change = float(np.linalg.norm(together - alone)) / max(float(np.linalg.norm(alone)), 1e-6)
    logger.debug("self-check: computing two texts together changes their vectors by %.5f", change)
    if not change <= _LARGEST_CHANGE:  # written so that NaN fails
        raise ModelLoadError(
            f"self-check: computing texts together changes their vectors by {change:.0%}; "
            f"rounding explains {_LARGEST_CHANGE:.0%} at most. "
            "This model does not run correctly on this device"
        )


def _make_batch(
    texts: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]], form: VectorForm
) -> PoolingBatch:
    lens = np.array([len(text) for text in texts], np.int32)
    begins = np.concatenate([[0], np.cumsum(lens)]).astype(np.int32)
    return PoolingBatch(
        token_ids=np.concatenate(texts).astype(np.int64),
        begins=begins,
        second_begins=lens,
        tasks=np.zeros(len(texts), np.int32),
        visible_lens=lens,
        forms=(form,) * len(texts),
    )
