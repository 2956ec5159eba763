"""Builds a tokenizer whose tokens are bytes and the control tokens of the chat template."""

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from ouzel.tokenizer.huggingface import HuggingFaceTokenizer

START, END, FAIL, DIE = 256, 257, 258, 259  # the tokens after the 256 bytes


def byte_tokenizer(*more_special_tokens: str) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer(
        byte_library_tokenizer(*more_special_tokens), {"eos_token": "<|im_end|>"}
    )


def byte_library_tokenizer(*more_special_tokens: str) -> tokenizers.Tokenizer:
    """Builds a tokenizer whose token ids 0 to 255 are bytes."""
    alphabet = byte_alphabet()
    library_tokenizer = tokenizers.Tokenizer(
        models.BPE({alphabet[byte]: byte for byte in range(256)}, [])
    )
    library_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library_tokenizer.decoder = decoders.ByteLevel()
    for token in ("<|im_start|>", "<|im_end|>", "|fail|", "|die|", *more_special_tokens):
        # a message can contain these two, because they are no control tokens
        is_special = token not in ("|fail|", "|die|")
        library_tokenizer.add_tokens([AddedToken(token, special=is_special)])
    return library_tokenizer


def byte_alphabet() -> list[str]:
    """Returns the characters with which GPT-2 writes the 256 bytes.

    A printable byte stands for itself; the others take the next characters from 256 on.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [
        chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)
    ]
