"""Makes the OpenVINO engine in its process; `EngineSpec` names the factory."""

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.drafts import names_assistant, names_draft_head
from ouzel.backends.openvino.encoding import create_encoder_runner, is_encoder
from ouzel.backends.openvino.speaking.loader import create_speaking_runner, is_speaker
from ouzel.checkpoint.model_files import (
    MAX_VOCAB_SIZE,
    read_config_json,
    read_model_eos_token_ids,
    read_special_tokens,
    read_tokenizer_json,
)
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.adapters import read_adapters
from ouzel.engine.base import Engine, ModelRunner, StorableRunner
from ouzel.engine.cache.prefix_store import PrefixStore, open_prefix_store
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.tokenizer import GrammarTokenizer, TokenizerSource
from ouzel.engine.pooling_engine import PoolingEngine
from ouzel.engine.speculation.proposals import Speculation
from ouzel.errors import ModelLoadError
from ouzel.grammar.vocabulary import JsonObject, special_token_ids
from ouzel.serve.draft_engine import create_draft_runner
from ouzel.types.engine_messages import AdapterFailed

logger = logging.getLogger(__name__)


class _AddedTokens(msgspec.Struct):
    """The added tokens of `tokenizer.json`; reading the vocabulary would take 0.17 s more."""

    added_tokens: list[JsonObject] = []


def openvino_engine(options: dict[str, object]) -> Engine:
    """Makes the engine of a model.

    `options` has these keys: `model`, a ModelConfig whose path is a local directory; `engine`, an
    EngineConfig; `memory_share`, the share of this engine in the free memory (1.0: all);
    `free_bytes`, the free memory before the server made its engines; and `limit_bytes`, the most
    bytes for weights and caches, or None. `free_bytes` is the same for all engines of the server
    and for a replacement.
    """
    model = msgspec.convert(options["model"], ModelConfig)
    engine = msgspec.convert(options["engine"], EngineConfig)
    directory = Path(model.model)
    if is_speaker(directory):
        return PoolingEngine(create_speaking_runner(model, engine))
    if is_encoder(directory):
        return PoolingEngine(create_encoder_runner(model, engine))
    with ThreadPoolExecutor(1) as threads:  # reading a large vocabulary takes most of a second
        reading = threads.submit(grammar_tokenizer, directory, expected_vocab_size(directory))
        share = msgspec.convert(options.get("memory_share", 1.0), float)
        free_bytes = msgspec.convert(options.get("free_bytes"), int | None)
        limit_bytes = msgspec.convert(options.get("limit_bytes"), int | None)
        runner = create_runner(
            model,
            engine,
            memory_share=share,
            free_bytes=free_bytes,
            limit_bytes=limit_bytes,
        )
        tokenizer = reading.result()
    if tokenizer is not None and tokenizer.vocab_size != runner.info.vocab_size:
        tokenizer = grammar_tokenizer(directory, runner.info.vocab_size)
    grammars = (
        None
        if tokenizer is None
        else GrammarCompiler(tokenizer, timeout_s=engine.grammar_timeout_s)
    )
    core = EngineCore(
        runner,
        prefix_caching=engine.prefix_caching,
        grammars=grammars,
        speculation=read_speculation(model, engine, runner),
        store=prefix_store(runner, engine),
    )
    load_adapters(core, read_adapters(model.lora))
    return core


def load_adapters(engine: EngineCore, paths: Mapping[str, str]) -> None:
    """Loads the adapters of the options before the first request. Raises ModelLoadError."""
    for name, path in paths.items():
        engine.adapters.load(name, path)
    while engine.has_unfinished():
        engine.step()
    for event in engine.adapters.take_events():
        if isinstance(event, AdapterFailed):
            engine.close()
            raise ModelLoadError(f"lora {event.name}={paths[event.name]}: {event.message}")


def read_speculation(
    model: ModelConfig, engine: EngineConfig, runner: ModelRunner
) -> Speculation | None:
    """Returns the sources of proposals, or None if the options name none.

    Raises ModelLoadError.
    """
    if not (engine.prompt_lookup or model.draft_model or model.mtp):
        return None
    if runner.info.audio is not None:
        if model.draft_model or model.mtp:
            raise ModelLoadError("draft_model, mtp: nothing proposes tokens for a speech model")
        return None
    assists, has_draft_head = names_assistant(model), names_draft_head(model)
    predicts = model.mtp or has_draft_head
    draft = None
    if model.draft_model and not (assists or predicts):
        draft = create_draft_runner(model, engine, runner.info)
    return Speculation(
        prompt_lookup=engine.prompt_lookup,
        draft=draft,
        predicts=predicts,
        reads_images=not has_draft_head,
        assists=assists,
    )


def prefix_store(runner: ModelRunner, engine: EngineConfig) -> PrefixStore | None:
    """Opens the directory of the prefix cache; returns None without one.

    Raises ModelLoadError.
    """
    if not engine.prefix_cache_dir:
        return None
    assert isinstance(runner, StorableRunner)
    return open_prefix_store(
        runner, engine.prefix_cache_dir, max_bytes=int(engine.prefix_cache_dir_gib * 2**30)
    )


def expected_vocab_size(directory: Path) -> int:
    """Returns the number of logits in config.json; 0 if it is missing or invalid.

    The backend reports an invalid number.
    """
    config = read_config_json(directory)
    text = config.get("text_config")  # the key of checkpoints that read images too
    declared = (text if isinstance(text, dict) else config).get("vocab_size")
    return declared if isinstance(declared, int) and 0 <= declared <= MAX_VOCAB_SIZE else 0


def grammar_tokenizer(directory: Path, vocab_size: int) -> GrammarTokenizer | None:
    """Returns the tokenizer for grammars, or None, with a warning, if it does not support them."""
    path = directory / "tokenizer.json"
    try:
        text = read_tokenizer_json(path)
        added = msgspec.json.decode(text, type=_AddedTokens).added_tokens
        named = special_token_ids({"added_tokens": added}).get(
            read_special_tokens(directory).get("eos_token", "")
        )
        eos_token_ids = (*read_model_eos_token_ids(directory), *(() if named is None else (named,)))
        return GrammarTokenizer(TokenizerSource(path, vocab_size, eos_token_ids))
    except (OSError, ValueError, ModelLoadError) as error:
        logger.warning("response formats and strict tools will be refused: %s: %s", path, error)
        return None
