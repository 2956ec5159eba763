"""Trains a tokenizer on the Python files of the standard library, for random checkpoints."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|im_end|>"


def standard_library() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text(encoding="utf-8", errors="replace")


def train_tokenizer(vocab_size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 2, min_frequency=0, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(standard_library(), trainer)
    tokenizer.add_special_tokens(
        [AddedToken("<|endoftext|>", special=True), AddedToken(END, special=True)]
    )
    return tokenizer
