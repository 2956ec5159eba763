"""Writes all files of the checkpoint but its weights: a tokenizer trained on the conversations, and configurations.

uv run python -m training.demo_vision.checkpoint_files
"""

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

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

from ouzel.prompts.chat_template import ChatTemplate
from training.demo_vision.conversations import LEVELS, ItemMaker
from training.demo_vision.sampling import Sampler
from training.demo_vision.sizes import (
    CONTEXT,
    Sizes,
    TextSizes,
    VisionSizes,
    config_of,
    processor_config,
)

TEMPLATE = Path(__file__).with_name("chat_template.jinja")
MODEL_DIRECTORY = Path(__file__).parents[2] / "src" / "ouzel" / "demo" / "vision_model"

# Like Qwen's, but the letters of what is written in capitals are tokens of their own, as digits are: they are read one
# by one.
SPLIT = (
    r"\p{Lu}(?=\p{Lu})|(?<=\p{Lu})\p{Lu}(?!\p{Ll})|(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip


def corpus(num_items: int) -> Iterator[str]:
    """Gives rendered conversations without special tokens, which must not be split into pieces."""
    template = ChatTemplate({"default": TEMPLATE.read_text(encoding="utf-8")}, {})
    maker = ItemMaker(Sampler(10**6), LEVELS[-1])
    for _ in range(num_items):
        for conversation in maker.item().conversations:
            text = template.render(
                conversation.messages, variables={"add_generation_prompt": False}
            )
            for token in SPECIAL:
                text = text.replace(token, "\n")
            yield text


def train_tokenizer(vocab_size: int, num_items: int) -> Tokenizer:
    """Returns a byte-level tokenizer whose last ids are the special tokens."""
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
        vocab_size=vocab_size - len(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=12,
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(num_items), trainer)
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in SPECIAL]
    )
    return tokenizer


def write_json(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def tokenizer_config(token_ids: Mapping[str, int]) -> dict[str, object]:
    added = {
        "lstrip": False,
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }
    return {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(token_id): {"content": token, **added} for token, token_id in token_ids.items()
        },
        "additional_special_tokens": [token for token in SPECIAL if token != "<|endoftext|>"],
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": CONTEXT,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }


def write_files(tokenizer: Tokenizer, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = tokenizer.get_vocab()
    token_ids = {token: vocabulary[token] for token in SPECIAL}
    ends = [token_ids["<|im_end|>"], token_ids["<|endoftext|>"]]
    sizes = Sizes(VisionSizes(), TextSizes(tokenizer.get_vocab_size()))
    tokenizer.save(str(directory / "tokenizer.json"))
    write_json(directory / "tokenizer_config.json", tokenizer_config(token_ids))
    write_json(directory / "config.json", config_of(sizes, token_ids))
    write_json(directory / "preprocessor_config.json", processor_config())
    generation = {"do_sample": False, "eos_token_id": ends, "pad_token_id": ends[1]}
    write_json(directory / "generation_config.json", generation)
    shutil.copyfile(TEMPLATE, directory / "chat_template.jinja")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=MODEL_DIRECTORY)
    parser.add_argument("--vocab-size", type=int, default=1024)
    parser.add_argument("--items", type=int, default=6000)
    options = parser.parse_args()
    tokenizer = train_tokenizer(options.vocab_size, options.items)
    write_files(tokenizer, options.output)
    print(f"vocabulary: {tokenizer.get_vocab_size()}")


if __name__ == "__main__":
    main()
