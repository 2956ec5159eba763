"""`EngineSpec` names these factories: they run in the engine's process."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import Engine, ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.tokenizer import GrammarTokenizer, TokenizerSource
from ouzel.engine.proposals import Speculation
from ouzel.errors import ModelLoadError
from ouzel.grammar.vocabulary import JsonObject, special_token_ids
from ouzel.tokenizer.model_files import (
    MAX_VOCAB_SIZE,
    read_json_object,
    read_model_eos_token_ids,
    read_special_tokens,
    read_tokenizer_json,
)
from ouzel.types import EngineInfo

logger = logging.getLogger(__name__)


class _AddedTokens(msgspec.Struct):
    """Holds these of `tokenizer.json`; decoding the vocabulary, too, takes a sixth of a second."""

    added_tokens: list[JsonObject] = []


def openvino_engine(options: dict[str, object]) -> Engine:
    """`options` holds the fields of ModelConfig, whose `model` is a local directory, and of EngineConfig."""
    model = msgspec.convert(options["model"], ModelConfig)
    engine = msgspec.convert(options["engine"], EngineConfig)
    directory = Path(model.model)
    with ThreadPoolExecutor(1) as threads:  # it takes most of a second for a large vocabulary
        reading = threads.submit(grammar_tokenizer, directory, expected_vocab_size(directory))
        runner = create_runner(model, engine)
        tokenizer = reading.result()
    if tokenizer is not None and tokenizer.vocab_size != runner.info.vocab_size:
        tokenizer = grammar_tokenizer(directory, runner.info.vocab_size)
    grammars = None if tokenizer is None else GrammarCompiler(tokenizer, timeout_s=engine.grammar_timeout_s)
    speculation = None
    if engine.prompt_lookup or model.draft_model:
        draft = draft_runner(model, engine, runner.info) if model.draft_model else None
        speculation = Speculation(prompt_lookup=engine.prompt_lookup, draft=draft)
    return EngineCore(runner, prefix_caching=engine.prefix_caching, grammars=grammars, speculation=speculation)


def draft_runner(model: ModelConfig, engine: EngineConfig, large: EngineInfo) -> ModelRunner:
    """Loads the draft model. Raises ModelLoadError where it cannot draft for this one."""
    directories = Path(model.model), Path(model.draft_model)
    of_large, of_draft = map(tokens_of, directories)
    if of_large != of_draft:
        differing = sum(of_large.get(each) != of_draft.get(each) for each in of_large.keys() | of_draft.keys())
        raise ModelLoadError(
            f"draft_model: its tokens must be those of the model, but {differing} of {len(of_large)} differ in "
            f"{directories[1]}"
        )
    config = msgspec.structs.replace(model, model=model.draft_model, draft_model="", max_model_len=None)
    runner = create_runner(config, engine, num_blocks=large.num_blocks)
    info = runner.info
    if info.num_state_slots:
        raise ModelLoadError(f"draft_model: a {info.model_type} has recurrent layers, and cannot draft")
    if info.block_size != large.block_size:
        raise ModelLoadError(f"draft_model: its blocks have {info.block_size} tokens, the model's {large.block_size}")
    return runner


def tokens_of(directory: Path) -> dict[str, int]:
    """Returns the ids of all tokens by their texts. Raises ModelLoadError where there is no tokenizer.json to tell."""
    path = directory / "tokenizer.json"
    try:
        content = json.loads(read_tokenizer_json(path))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"draft_model: the tokens of {path} cannot be compared: {error}") from error
    vocabulary = content.get("model", {}).get("vocab", {})
    if isinstance(vocabulary, list):  # of a unigram model, as pairs of text and score
        vocabulary = {text: token_id for token_id, (text, _) in enumerate(vocabulary)}
    return dict(vocabulary) | {token["content"]: token["id"] for token in content.get("added_tokens", [])}


def expected_vocab_size(directory: Path) -> int:
    """Returns the width of the logits as config.json has it, and 0 when it does not say, or is refused elsewhere."""
    config = read_json_object(directory / "config.json")
    text = config.get("text_config")  # of a checkpoint of several modes
    declared = (text if isinstance(text, dict) else config).get("vocab_size")
    return declared if isinstance(declared, int) and 0 <= declared <= MAX_VOCAB_SIZE else 0


def grammar_tokenizer(directory: Path, vocab_size: int) -> GrammarTokenizer | None:
    """Returns None when grammars cannot be honoured with this tokenizer; the log says why."""
    path = directory / "tokenizer.json"
    try:
        text = read_tokenizer_json(path)
        added = msgspec.json.decode(text, type=_AddedTokens).added_tokens
        named = special_token_ids({"added_tokens": added}).get(read_special_tokens(directory).get("eos_token", ""))
        eos_token_ids = (*read_model_eos_token_ids(directory), *(() if named is None else (named,)))
        return GrammarTokenizer(TokenizerSource(path, vocab_size, eos_token_ids))
    except (OSError, ValueError, ModelLoadError) as error:
        logger.warning("response formats and strict tools will be refused: %s: %s", path, error)
        return None
