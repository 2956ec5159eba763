"""Trains the byte-level tokenizer on generated conversations and writes the tokenizer and configuration files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from training.demo_model.conversations import MODEL_DIRECTORY, Renderer, conversation
from training.demo_model.sampling import Sampler

# Unlike GPT-2's, a word never takes the space or the quotation mark before it along: " Paris" in a sentence and
# "Paris" in JSON share their tokens, which makes copying easy for a small model.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKERS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
]


def corpus(count: int, seed: int) -> Iterator[str]:
    """Rendered conversations without the added tokens, which must not be split into pieces."""
    renderer, sampler = Renderer(), Sampler(seed)
    for _ in range(count):
        text = renderer.full(conversation(sampler))
        for token in [*SPECIAL, *MARKERS]:
            text = text.replace(token, "\n")
        yield text


def train_tokenizer(vocab_size: int, count: int) -> Tokenizer:
    """A byte-level tokenizer whose last ids are the added tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(
        add_prefix_space=False, use_regex=False, trim_offsets=False
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIAL) - len(MARKERS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=12,
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(count, seed=10**6), trainer)
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in SPECIAL]
    )
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in MARKERS])
    return tokenizer


def write_json(path: Path, value: dict[str, Any]) -> None:
    """A readable JSON file."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_tokenizer_files(tokenizer: Tokenizer, directory: Path) -> None:
    """`tokenizer.json` and the two files that describe its special tokens."""
    tokenizer.save(str(directory / "tokenizer.json"))
    added = {
        str(tokenizer.token_to_id(token)): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": token in SPECIAL,
        }
        for token in [*SPECIAL, *MARKERS]
    }
    configuration = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 4096,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    write_json(directory / "tokenizer_config.json", configuration)
    special = {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}
    for role, token in (("eos_token", "<|im_end|>"), ("pad_token", "<|endoftext|>")):
        special[role] = {
            key: value
            for key, value in added[str(tokenizer.token_to_id(token))].items()
            if key != "special"
        }
    write_json(directory / "special_tokens_map.json", special)


def write_generation_config(tokenizer: Tokenizer, directory: Path) -> None:
    """`generation_config.json`: greedy, both end tokens."""
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    write_json(
        directory / "generation_config.json",
        {"do_sample": False, "eos_token_id": ends, "pad_token_id": ends[1]},
    )


def main() -> None:
    """Train and write everything that does not depend on the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocab-size", type=int, default=2048)
    parser.add_argument("--conversations", type=int, default=12000)
    options = parser.parse_args()
    tokenizer = train_tokenizer(options.vocab_size, options.conversations)
    MODEL_DIRECTORY.mkdir(parents=True, exist_ok=True)
    write_tokenizer_files(tokenizer, MODEL_DIRECTORY)
    write_generation_config(tokenizer, MODEL_DIRECTORY)
    print(f"vocabulary: {tokenizer.get_vocab_size()}")


if __name__ == "__main__":
    main()
