"""A model gets the KV cache that its verdict chooses; the verdict is made where none is kept yet."""

import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ouzel.backends.openvino.cache_trial import CacheTrial, MakeRunner
from ouzel.backends.openvino.cache_verdict import (
    SCALED,
    Cache,
    CacheVerdict,
    facts_of_verdict,
    keep_verdict,
    read_verdict,
    verdict_path,
)
from ouzel.backends.openvino.ir import is_ir_directory
from ouzel.backends.openvino.kv_cache import context_length
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, ModelConfig

logger = logging.getLogger(__name__)

TOKENIZER_FILE = "tokenizer.json"


def is_chosen(core: ov.Core, engine: EngineConfig) -> bool:
    """Tells whether the options and the device leave a choice: they come to u8."""
    if engine.device != "CPU":
        return False
    by_itself = core.get_property(engine.device, "KV_CACHE_PRECISION")
    return engine.kv_cache_dtype == "u8" or (engine.kv_cache_dtype == "auto" and by_itself == ov.Type.u8)


def kept_verdict(entry: Path | None, model: ModelConfig) -> CacheVerdict | None:
    graphs = Path(model.model) if is_ir_directory(Path(model.model)) else None
    path = verdict_path(entry, graphs, model.cache_dir)
    try:
        return None if path is None else read_verdict(path, facts_of_verdict(entry, graphs))
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class CacheChoice:
    engine: EngineConfig  # with the type of the cache
    cache: Cache | None  # None: there was no choice, or there is no verdict
    verdict: CacheVerdict | None
    is_open: bool  # a load would make a verdict


def find_choice(
    core: ov.Core, language_model: LanguageModel, model: ModelConfig, engine: EngineConfig, entry: Path | None
) -> CacheChoice:
    """Chooses by the verdict that is kept.

    A head that gives a value for each label says too little of the model, which keeps u8. So does a model without a
    tokenizer of its own.
    """
    head = language_model.vector_head
    if not is_chosen(core, engine) or (head is not None and head.num_labels):
        return CacheChoice(engine, None, None, is_open=False)
    verdict = kept_verdict(entry, model)
    if verdict is None:
        has_tokenizer = (Path(model.model) / TOKENIZER_FILE).is_file()
        if not has_tokenizer:
            logger.info("the KV cache stays u8, without a trial: there is no %s", TOKENIZER_FILE)
        return CacheChoice(engine, None, None, is_open=has_tokenizer)
    return choice_by(verdict, engine)


def choice_by(verdict: CacheVerdict, engine: EngineConfig) -> CacheChoice:
    cache = verdict.choose(keeps_u8=engine.kv_cache_dtype == "u8")
    if cache == "f16":
        engine = msgspec.structs.replace(engine, kv_cache_dtype="f16")
    return CacheChoice(engine, cache, verdict, is_open=False)


def choose_cache(
    core: ov.Core, language_model: LanguageModel, model: ModelConfig, engine: EngineConfig, make_runner: MakeRunner
) -> tuple[LanguageModel, EngineConfig]:
    """Returns the model, of which the graph may have been changed, and the options with the type of the cache."""
    choice = find_choice(core, language_model, model, engine, language_model.cache_entry)
    if choice.is_open and (verdict := make_verdict(language_model, model, engine, make_runner)) is not None:
        choice = choice_by(verdict, engine)
    if choice.verdict is None:
        return language_model, engine
    cost = ", which takes nearly twice the memory: as much holds half the tokens" if choice.cache == "f16" else ""
    logger.info("KV cache: %s for this model%s (%s)", choice.cache, cost, choice.verdict.figures())
    if choice.cache == SCALED:
        language_model = language_model.with_key_scales(choice.verdict.key_scales())
    return language_model, choice.engine


def make_verdict(
    language_model: LanguageModel, model: ModelConfig, engine: EngineConfig, make_runner: MakeRunner
) -> CacheVerdict | None:
    max_model_len = context_length(model.max_model_len, language_model.max_positions, language_model.default_positions)
    trial = CacheTrial(
        language_model=language_model.for_context(max_model_len),
        model=model,
        engine=engine,
        max_model_len=max_model_len,
        make_runner=make_runner,
    )
    verdict = trial.judge()
    entry = language_model.cache_entry
    graphs = Path(model.model) if is_ir_directory(Path(model.model)) else None
    path = verdict_path(entry, graphs, model.cache_dir)
    if verdict is not None and path is not None:
        try:
            keep_verdict(path, facts_of_verdict(entry, graphs), verdict)
        except OSError as error:  # another process has removed the entry
            logger.debug("the verdict on the KV cache is not kept: %s", error)
    return verdict
