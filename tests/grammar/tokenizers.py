"""Makes byte-level tokenizers with marks, with and without merges."""

import json
import tempfile
from functools import lru_cache
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from ouzel.engine.grammars.tokenizer import GrammarTokenizer, TokenizerSource
from ouzel.grammar.vocabulary import special_token_ids

MARKS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
TEXT = [
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    "Hello World! The weather is fine: 42.",
    "\n\n",
]


@lru_cache
def trained_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXT * 10, trainer)
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS[:2]])
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS[2:]])
    return tokenizer


@lru_cache
def special_ids() -> dict[str, int]:
    return dict(special_token_ids(json.loads(trained_tokenizer().to_str())))


@lru_cache
def grammar_tokenizer(vocab_size: int = 512) -> GrammarTokenizer:
    return saved_for_grammars(trained_tokenizer(), vocab_size, special_ids()["<|im_end|>"])


_DIRECTORY = tempfile.TemporaryDirectory(prefix="ouzel-tokenizers-")


def saved_for_grammars(tokenizer: Tokenizer, vocab_size: int, end: int) -> GrammarTokenizer:
    """Saves the tokenizer in a file that other processes can read while this process lives."""
    path = Path(tempfile.mkdtemp(dir=_DIRECTORY.name)) / "tokenizer.json"
    tokenizer.save(str(path))
    return GrammarTokenizer(TokenizerSource(path, vocab_size, (end,)))
