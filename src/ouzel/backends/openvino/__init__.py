"""The OpenVINO backend: loads a model directory and makes its ModelRunner, on a CPU or another
device of OpenVINO.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from ouzel.backends.openvino.adapters.adapter_options import (
    num_adapters,
    read_limits,
    subtract_adapter_bytes,
)
from ouzel.backends.openvino.assistants.attachment import attach_assistant, load_assistant
from ouzel.backends.openvino.auto_precision import resolve_auto_precision
from ouzel.backends.openvino.cache.cache_identity import cache_identity
from ouzel.backends.openvino.cache.cache_verdict import cache_name
from ouzel.backends.openvino.cache.chosen_cache import choose_cache, store_overflow
from ouzel.backends.openvino.cache.kv_cache import KvCache, cache_tables
from ouzel.backends.openvino.cache.memory_plan import plan_memory
from ouzel.backends.openvino.checks.f16_range import F16Unfit, check_range_afterwards
from ouzel.backends.openvino.checks.passed_check import (
    ROW_CHECK_FILE,
    SELF_CHECK_FILE,
    check_once,
    list_check_facts,
    list_row_check_facts,
)
from ouzel.backends.openvino.checks.row_check import check_rows, refuse_kinds
from ouzel.backends.openvino.checks.selfcheck import SelfCheckFailed, check_runner, warm_up
from ouzel.backends.openvino.checks.state_check import check_operations
from ouzel.backends.openvino.compilation import (
    can_attend,
    check_options,
    compile_graphs,
    fuse_graphs,
    precision_name,
)
from ouzel.backends.openvino.draft_head_loader import load_draft_head
from ouzel.backends.openvino.drafts import names_assistant
from ouzel.backends.openvino.ir import is_ir_directory, load_ir
from ouzel.backends.openvino.kernels.library import uses_kernels
from ouzel.backends.openvino.kernels.program import keep_row_bits
from ouzel.backends.openvino.kernels.usage import describe_products, name_kernels
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.loader import load_checkpoint, refuse_options
from ouzel.backends.openvino.media_loader import make_media_runners
from ouzel.backends.openvino.memory import give_back_pages
from ouzel.backends.openvino.runners.assistant_runner import AssistantRunner, CompiledAssistant
from ouzel.backends.openvino.runners.prediction_runner import CompiledPrediction, PredictionRunner
from ouzel.backends.openvino.runners.row_padding import num_padding_blocks
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.backends.openvino.runners.state_tables import StateTables, state_tables
from ouzel.backends.openvino.speech_loader import compile_audio_parts, make_audio_runner
from ouzel.backends.openvino.task import find_task
from ouzel.backends.openvino.vector_head import vector_head, vector_size
from ouzel.backends.openvino.weights.cache import discard_entry
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.checkpoint.lone_drafts import refuse_lone_draft
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.machine.free_memory import available_bytes
from ouzel.observability.progress import stage
from ouzel.types.engine_info import EngineInfo

__all__ = ["create_runner"]

logger = logging.getLogger(__name__)


def create_runner(
    model: ModelConfig,
    engine: EngineConfig,
    *,
    num_blocks: int | None = None,
    memory_share: float = 1.0,
    free_bytes: int | None = None,
    limit_bytes: int | None = None,
) -> ModelRunner:
    """Loads, compiles and checks the model in the local directory `model.model`.

    Raises ModelLoadError for every fault that the user can mend. `num_blocks` sets the number of
    blocks of the KV cache, regardless of the memory. Without `num_blocks` the free memory decides,
    and this model gets the share `memory_share` (0 to 1) of it. The type of the KV cache depends on
    `free_bytes`, the free memory of the machine in bytes. Replicas get the same `free_bytes`, so
    that all of them choose the same type. Weights and caches together take at most `limit_bytes`.
    """
    started = time.perf_counter()
    core = ov.Core()
    check_options(core, engine)
    config = read_config(Path(model.model))
    share_bytes = int((available_bytes() if free_bytes is None else free_bytes) * memory_share)
    if limit_bytes is not None:
        share_bytes = min(share_bytes, limit_bytes)
    make = partial(
        make_checked_runner,
        core,
        config,
        model,
        num_blocks=num_blocks,
        memory_share=memory_share,
        share_bytes=share_bytes,
        limit_bytes=limit_bytes,
    )
    reason = ""
    try:
        runner = make_sound_runner(partial(make, engine))
    except F16Unfit as error:
        reason = str(error)
    # retried outside the except block, where the error no longer holds the first model in memory
    if reason:
        logger.warning("KV cache: u8 instead of f16: %s", reason)
        runner = make_sound_runner(
            partial(make, msgspec.structs.replace(engine, kv_cache_dtype="u8"))
        )
    runner.info = msgspec.structs.replace(runner.info, load_s=time.perf_counter() - started)
    info = runner.info
    logger.info(
        "loaded %s (%s, %s) in %.1f s", model.model, info.model_type, info.weights, info.load_s
    )
    return runner


def make_sound_runner(make: Callable[[], OpenVINORunner | None]) -> OpenVINORunner:
    """Calls `make` until it returns a runner: with calibrated weights, with the stored weights, and
    with new weights.

    `make` returns None after it has deleted a weight cache entry that failed the self-check. There
    are at most two such entries.
    """
    runner = make() or make() or make()
    assert runner is not None, "weights that do not come from a cache entry raise SelfCheckFailed"
    return runner


def make_checked_runner(
    core: ov.Core,
    config: HfConfig,
    model: ModelConfig,
    engine: EngineConfig,
    *,
    num_blocks: int | None,
    memory_share: float,
    share_bytes: int,
    limit_bytes: int | None,
) -> OpenVINORunner | None:
    """Loads the model and runs its checks; returns None if cached weights fail the self-check.

    The cache entry of such weights is deleted, so that the next call makes them anew. Raises
    SelfCheckFailed if weights that were made in this call fail, and F16Unfit if an f16 KV cache was
    chosen that suits the model or the memory badly.
    """
    packs = uses_kernels(engine)
    language_model = load(core, Path(model.model), config, model, packs=packs)
    is_ir = is_ir_directory(Path(model.model))
    if not is_ir and (products := describe_products(language_model.graphs, engine)):
        logger.info("%s", products)
    if engine.deterministic:
        refuse_kinds(config.model_type, language_model, num_adapters(model))
    attends = can_attend(core, resolve_auto_precision(core, engine, language_model))
    make = partial(
        make_runner,
        core,
        config=config,
        attends=attends,
        memory_share=memory_share,
        limit_bytes=None if limit_bytes is None else limit_bytes - language_model.weight_bytes,
    )
    language_model, choice = choose_cache(
        *(core, language_model, model, engine, make),
        attends=attends,
        free_bytes=share_bytes - language_model.weight_bytes,
        num_blocks=num_blocks,
    )
    is_f16_chosen = choice.cache == "f16"
    runner = make(
        language_model=language_model,
        model=model,
        engine=choice.engine,
        num_blocks=num_blocks,
        keeps_context=is_f16_chosen and num_blocks is None,
    )
    try:
        with (
            give_back_pages(language_model.mappings),
            stage("loading and checking the model"),
            check_range_afterwards(runner, is_named=not is_f16_chosen),
        ):
            check_or_warm_up(
                core,
                runner,
                language_model,
                choice.engine,
                is_rotary=is_rotary(language_model, config),
            )
    except F16Unfit:
        store_overflow(language_model.cache_entry, model)
        runner.close()
        raise
    except SelfCheckFailed as error:
        entry = language_model.cache_entry
        if entry is None or language_model.is_entry_new:
            raise
        discard_entry(entry, str(error))
        if entry.exists():  # the cache may only be read
            raise
        runner.close()
        return None
    return runner


def check_or_warm_up(
    core: ov.Core,
    runner: OpenVINORunner,
    language_model: LanguageModel,
    engine: EngineConfig,
    *,
    is_rotary: bool,
) -> None:
    """Runs the self-check of the weights, or only warms up if an earlier start passed it with the
    same facts.

    For a deterministic engine it also checks that a row gets the same bits in every batch. Raises
    SelfCheckFailed, and ModelLoadError if a deterministic engine cannot keep the bits of a row.
    After the return the plugin has copied the weights into the layout of the processor.
    """
    entry, info = language_model.cache_entry, runner.info
    facts: dict[str, str] = {}
    try:
        if entry is not None:
            facts = list_check_facts(core, engine, entry, info.max_model_len)
    except OSError:  # another process has removed the entry
        entry = None
    check = partial(
        check_runner, runner, language_model.num_relative_positions, is_rotary=is_rotary
    )
    if not check_once(entry, SELF_CHECK_FILE, facts, check):
        warm_up(runner)
    if engine.deterministic:
        facts = list_row_check_facts(facts, info, runner.num_threads)
        check_once(entry, ROW_CHECK_FILE, facts, partial(check_rows, runner))


def make_runner(
    core: ov.Core,
    language_model: LanguageModel,
    config: HfConfig,
    model: ModelConfig,
    engine: EngineConfig,
    *,
    attends: bool = True,
    num_blocks: int | None = None,
    memory_share: float = 1.0,
    limit_bytes: int | None = None,
    keeps_context: bool = False,
) -> OpenVINORunner:
    """Compiles the graphs, plans the memory and makes the runner.

    `limit_bytes` limits the memory of the caches, in addition to the free memory.
    Without `attends` attention stays with the runtime. With `keeps_context` it raises F16Unfit if
    the memory does not hold one request of the model's full length.
    """
    check_operations(core, language_model.graph, engine.device)
    with give_back_pages(language_model.mappings):
        vision, hearing = make_media_runners(core, language_model, engine)
        audio_parts = compile_audio_parts(core, language_model, engine)
        engine = resolve_auto_precision(core, engine, language_model)
        fused = fuse_graphs(core, language_model, engine, attends=attends)
        compiled, *further = compile_graphs(core, fused, language_model, engine)
    keeps_bits = keep_row_bits(fused, may_be_wide=not engine.deterministic)
    cache, states = cache_tables([compiled, *further]), state_tables(compiled)
    free_bytes = int(available_bytes() * memory_share)
    if limit_bytes is not None:
        free_bytes = min(free_bytes, limit_bytes)
    free_bytes = subtract_adapter_bytes(language_model.adapters, model, free_bytes)
    max_model_len = language_model.context_length(model.max_model_len)
    audio, further = make_audio_runner(
        audio_parts, further, language_model.speech, engine, free_bytes=free_bytes
    )
    plan, state_plan = plan_memory(
        (cache, states),
        max_model_len,
        model,
        engine,
        free_bytes,
        num_blocks=num_blocks,
        keeps_context=keeps_context,
    )
    served = language_model.for_context(plan.max_model_len)
    info = EngineInfo(
        backend="openvino",
        model_type=config.model_type,
        device=engine.device,
        weights=language_model.weights,
        precision=precision_name(compiled, engine),
        kernels=name_kernels(language_model.graphs),
        kv_cache_dtype=cache_name(cache, has_scales=bool(language_model.key_scales)),
        vocab_size=language_model.vocab_size,
        max_model_len=plan.max_model_len,
        block_size=plan.block_size,
        num_blocks=plan.num_blocks,
        max_num_seqs=state_plan.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        num_state_slots=state_plan.num_slots,
        has_vision=vision is not None,
        has_hearing=hearing is not None,
        audio=None if audio is None else audio.shape,
        attends_to_whole_images=language_model.attends_to_whole_images,
        attends_to_whole_prompts=language_model.attends_to_whole_prompts,
        is_deterministic=engine.deterministic or keeps_bits,
        separates_rows=engine.deterministic and not keeps_bits,
        task=find_task(config, Path(model.model), model.task),
        vector_size=vector_size(language_model),
        max_loras=0 if language_model.adapters is None else num_adapters(model),
        max_lora_rank=0 if language_model.adapters is None else language_model.adapters.rank,
        cache_identity=cache_identity(core, compiled, [*cache, *states], served, engine),
        load_s=0.0,  # known after the checks
    )
    caches = (
        KvCache(cache, plan.num_blocks + num_padding_blocks(engine)),
        StateTables(states, state_plan),
    )
    prediction = make_prediction_runner(further, caches[0], served, info)
    return OpenVINORunner(
        *(compiled, caches, served, info),
        vision=vision,
        hearing=hearing,
        prediction=prediction,
        audio=audio,
    )


def make_prediction_runner(
    compiled: list[ov.CompiledModel], cache: KvCache, served: LanguageModel, info: EngineInfo
) -> PredictionRunner | AssistantRunner | None:
    """Makes the runner of the layer, or of the assistant, that proposes further tokens."""
    if served.prediction is None:
        return None
    if served.prediction.embedding is None:
        return PredictionRunner(CompiledPrediction(*compiled), cache, served.prediction, info)
    return AssistantRunner(CompiledAssistant(*compiled), cache, served.prediction, info)


def is_rotary(language_model: LanguageModel, config: HfConfig) -> bool:
    """Tells whether the model has rotary positions; for an IR only its config.json can tell."""
    text = config.text_model()
    return bool(language_model.ropes) or text.has("rope_theta") or text.has("rope_parameters")


def read_config(directory: Path) -> HfConfig:
    if not directory.is_dir():
        raise ModelLoadError(f"{directory} is not a directory")
    refuse_lone_draft(directory)
    return read_hf_config(directory)


def load(
    core: ov.Core,
    directory: Path,
    config: HfConfig,
    model: ModelConfig,
    *,
    packs: bool = False,
) -> LanguageModel:
    """Loads the model. With `packs` matrices of integers are packed for Ouzel's own kernels."""
    if is_ir_directory(directory):
        refuse_options(model)
        return load_ir(core, directory, config)
    has_assistant = names_assistant(model)
    head = vector_head(config, directory, model)  # before the EAGLE-3 head is compressed
    loaded = load_checkpoint(
        directory,
        config,
        model.weight_plan,
        model.cache_dir,
        predicts=model.mtp,
        lends_parts=has_assistant,
        draft_head=load_draft_head(model, config, packs=packs),
        adapters=read_limits(model),
        vector_head=head,
        packs=packs,
    )
    if not has_assistant:
        return loaded
    return attach_assistant(
        loaded,
        load_assistant(Path(model.draft_model), model.weight_plan, model.cache_dir, packs=packs),
    )
