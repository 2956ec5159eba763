"""Writes the tokenizers of checkpoints that hear."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def write_tokenizer(
    directory: Path, template: str, turns: tuple[str, str], marks: tuple[str, ...], first: int
) -> None:
    """Writes a tokenizer of ASCII in which `marks` begin with the token `first`.

    The checkpoints have too few tokens for all bytes.
    """
    unused = [f"<|unused_{number}|>" for number in range(first - len(turns))]
    special = [*turns, *unused, *marks]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ascii_text = "".join(map(chr, [10, *range(32, 127)]))
    units = "".join(piece for piece, _ in byte_level.pre_tokenize_str(ascii_text))
    vocabulary = {token: number for number, token in enumerate([*special, *units])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"eos_token": turns[1], "chat_template": template}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
