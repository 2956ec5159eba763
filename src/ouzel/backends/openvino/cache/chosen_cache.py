"""Chooses the KV cache: f16 if the memory holds enough of it, else the u8 cache of the verdict.

A verdict is made if none is stored yet, and only for models that get a u8 cache, by lack of memory
or because the user named u8.
"""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ouzel.backends.openvino.cache.cache_trial import CacheTrial, MakeRunner
from ouzel.backends.openvino.cache.cache_verdict import (
    SCALED,
    Cache,
    CacheVerdict,
    list_verdict_facts,
    read_verdict,
    verdict_path,
    write_verdict,
)
from ouzel.backends.openvino.cache.f16_room import f16_block_bytes, f16_room
from ouzel.backends.openvino.compilation import is_u8_by_itself
from ouzel.backends.openvino.ir import is_ir_directory
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, ModelConfig

logger = logging.getLogger(__name__)

TOKENIZER_FILE = "tokenizer.json"
NEAR_F16_LIMIT = (
    "u8, because keys or values of this model come near the end of f16's range or exceed it"
)


def has_choice(core: ov.Core, engine: EngineConfig) -> bool:
    """Tells whether there is a choice: the user names u8, or `auto` means u8 on this CPU."""
    if engine.device != "CPU":
        return False
    return engine.kv_cache_dtype == "u8" or is_u8_by_itself(core, engine)


@dataclass(frozen=True, slots=True)
class CacheChoice:
    engine: EngineConfig  # the options with the type of the cache
    cache: Cache | None  # None: there was no choice, or there is no verdict
    verdict: CacheVerdict | None = None
    is_open: bool = False  # a load would make a verdict
    reason: str = ""  # why the type is f16 or u8; empty if the user has named it
    keeps_u8: bool = False  # the verdict may not choose f16


def find_choice(
    core: ov.Core,
    language_model: LanguageModel,
    model: ModelConfig,
    engine: EngineConfig,
    entry: Path | None,
    *,
    attends: bool,
    free_bytes: int,
    num_blocks: int | None = None,
) -> CacheChoice:
    """Chooses the KV cache by the free memory and the stored verdict, without a trial.

    `attends` tells whether the kernels compute attention. `free_bytes` is the memory that is free
    for the model after its weights.
    """
    if language_model.speech is not None and engine.kv_cache_dtype == "auto":
        # No text is long enough for a trial, and u8 rounds the keys of the sound.
        return CacheChoice(with_f16(engine), None)
    if not has_choice(core, engine) or not f16_block_bytes(language_model.graphs):
        return CacheChoice(engine, None)
    verdict = load_verdict(entry, model)
    choice = CacheChoice(engine, None, keeps_u8=True)
    if verdict is not None and verdict.overflows_f16:
        choice = replace(choice, reason=NEAR_F16_LIMIT)
    elif engine.kv_cache_dtype == "auto":
        room = f16_room(
            core, language_model, model, engine, free_bytes=free_bytes, num_blocks=num_blocks
        )
        choice = replace(choice, reason=room.reason(), keeps_u8=room.num_held < 1)
        if room.suffices:
            return replace(choice, engine=with_f16(engine), cache="f16")
    if not may_be_tried(language_model, model):
        return choice
    if verdict is None or verdict.plain is None or verdict.attends != attends:
        return replace(choice, is_open=True)
    return apply_verdict(verdict, choice)


def may_be_tried(language_model: LanguageModel, model: ModelConfig) -> bool:
    """Tells whether a trial can judge a u8 cache of the model.

    It cannot if the head gives a value for each label, or if the model has no tokenizer of its own.
    """
    head = language_model.vector_head
    if head is not None and head.num_labels:
        return False
    has_tokenizer = (Path(model.model) / TOKENIZER_FILE).is_file()
    if not has_tokenizer:
        logger.info("the KV cache is u8, without a trial: there is no %s", TOKENIZER_FILE)
    return has_tokenizer


def apply_verdict(verdict: CacheVerdict, choice: CacheChoice) -> CacheChoice:
    cache = verdict.choose(keeps_u8=choice.keeps_u8)
    engine = with_f16(choice.engine) if cache == "f16" else choice.engine
    return replace(choice, engine=engine, cache=cache, verdict=verdict, is_open=False)


def with_f16(engine: EngineConfig) -> EngineConfig:
    return msgspec.structs.replace(engine, kv_cache_dtype="f16")


def choose_cache(
    core: ov.Core,
    language_model: LanguageModel,
    model: ModelConfig,
    engine: EngineConfig,
    make_runner: MakeRunner,
    *,
    attends: bool,
    free_bytes: int,
    num_blocks: int | None,
) -> tuple[LanguageModel, CacheChoice]:
    """Chooses the cache, by a trial if no verdict is stored.

    Returns the model, with scaled keys in its graph if these were chosen, and the choice.
    """
    entry = language_model.cache_entry
    choice = find_choice(
        *(core, language_model, model, engine, entry),
        attends=attends,
        free_bytes=free_bytes,
        num_blocks=num_blocks,
    )
    if choice.reason:
        logger.info("KV cache: %s", choice.reason)
    if choice.is_open:
        verdict = make_verdict(language_model, model, engine, make_runner, attends=attends)
        choice = choice if verdict is None else apply_verdict(verdict, choice)
    if choice.verdict is not None:
        cost = ", which takes nearly twice the memory of u8" if choice.cache == "f16" else ""
        logger.info(
            "KV cache: %s for this model%s (%s)", choice.cache, cost, choice.verdict.figures()
        )
        if choice.cache == SCALED:
            language_model = language_model.with_key_scales(choice.verdict.key_scales())
    return language_model, choice


def make_verdict(
    language_model: LanguageModel,
    model: ModelConfig,
    engine: EngineConfig,
    make_runner: MakeRunner,
    *,
    attends: bool,
) -> CacheVerdict | None:
    """Runs the trial and stores its verdict, if it has one."""
    max_model_len = language_model.context_length(model.max_model_len)
    trial = CacheTrial(
        language_model=language_model.for_context(max_model_len),
        model=model,
        engine=engine,
        max_model_len=max_model_len,
        make_runner=make_runner,
    )
    verdict, entry = trial.judge(), language_model.cache_entry
    earlier = load_verdict(entry, model)
    if verdict is not None:
        overflows_f16 = earlier is not None and earlier.overflows_f16
        verdict = msgspec.structs.replace(verdict, overflows_f16=overflows_f16, attends=attends)
        store_verdict(entry, model, verdict)
    return verdict


def store_overflow(entry: Path | None, model: ModelConfig) -> None:
    """Stores the fact that the model's keys or values do not fit into f16, for the next starts."""
    verdict = load_verdict(entry, model) or CacheVerdict(plain=None)
    store_verdict(entry, model, msgspec.structs.replace(verdict, overflows_f16=True))


def load_verdict(entry: Path | None, model: ModelConfig) -> CacheVerdict | None:
    graphs = find_graphs(model)
    path = verdict_path(entry, graphs, model.cache_dir)
    try:
        return None if path is None else read_verdict(path, list_verdict_facts(entry, graphs))
    except OSError:
        return None


def store_verdict(entry: Path | None, model: ModelConfig, verdict: CacheVerdict) -> None:
    graphs = find_graphs(model)
    path = verdict_path(entry, graphs, model.cache_dir)
    if path is None:
        return
    try:
        source = "" if entry is not None or graphs is None else str(graphs.resolve())
        write_verdict(path, list_verdict_facts(entry, graphs), verdict, source=source)
    except OSError as error:  # another process has removed the entry
        logger.debug("the verdict on the KV cache is not stored: %s", error)


def find_graphs(model: ModelConfig) -> Path | None:
    """Returns the model directory if it has OpenVINO's graphs, whose weights are not in the
    cache.
    """
    directory = Path(model.model)
    return directory if is_ir_directory(directory) else None
