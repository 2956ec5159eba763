"""Lays out prompts for filling in the middle: prefix and suffix between the model's own tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.tokenizer.base import Tokenizer

_PREFIX, _SUFFIX = "{prefix}", "{suffix}"


@dataclass(frozen=True, slots=True)
class InfillFormat:
    layout: str  # single tokens around the two texts; the model writes the middle after them
    # tokens that end the middle, besides the model's end tokens; the vocabulary may lack them
    ends: tuple[str, ...]


# The layouts of the families' model cards and tokenizers. The first layout that fits
# the vocabulary is used.
INFILL_FORMATS = (
    # Qwen2.5-Coder and later Qwen, CodeGemma, Granite 3 and 4
    InfillFormat(
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        ends=(
            "<|fim_pad|>",
            "<|repo_name|>",
            "<|file_sep|>",
            "<|file_separator|>",
            "<|endoftext|>",
        ),
    ),
    # StarCoder, StarCoder2, StableCode, Granite Code
    InfillFormat(
        "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        ends=("<fim_pad>", "<repo_name>", "<file_sep>", "<|endoftext|>"),
    ),
    # SantaCoder
    InfillFormat(
        "<fim-prefix>{prefix}<fim-suffix>{suffix}<fim-middle>", ends=("<fim-pad>", "<|endoftext|>")
    ),
    # DeepSeek-Coder, DeepSeek-V2 and later
    InfillFormat("<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>", ends=()),
    # CodeLlama
    InfillFormat("▁<PRE>{prefix}▁<SUF>{suffix}▁<MID>", ends=("▁<EOT>",)),
    # Codestral
    InfillFormat("[SUFFIX]{suffix}[PREFIX]{prefix}", ends=()),
    # Seed-Coder
    InfillFormat("<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>", ends=()),
)


class Infill:
    """Lays out prefix and suffix in the format that the model was trained with."""

    def __init__(
        self, tokenizer: Tokenizer, layout: Sequence[int | str], end_token_ids: tuple[int, ...]
    ) -> None:
        self.end_token_ids = end_token_ids
        self._tokenizer = tokenizer
        self._layout = layout  # token ids and the two placeholders

    @classmethod
    def for_tokenizer(cls, tokenizer: Tokenizer) -> "Infill | None":
        """Returns None if the vocabulary has no tokens for filling in the middle."""
        for each in INFILL_FORMATS:
            parts = [part for part in re.split(f"({_PREFIX}|{_SUFFIX})", each.layout) if part]
            layout = [
                part if part in (_PREFIX, _SUFFIX) else tokenizer.token_id(part) for part in parts
            ]
            own = [token_id for token_id in layout if isinstance(token_id, int)]
            if None not in layout:
                ends = [tokenizer.token_id(token) for token in each.ends]
                end_token_ids = tuple(
                    token_id for token_id in (*own, *ends) if token_id is not None
                )
                return cls(tokenizer, [part for part in layout if part is not None], end_token_ids)
        return None

    def token_ids(self, prefix: Sequence[int], suffix: str) -> list[int]:
        texts = {_PREFIX: prefix, _SUFFIX: _encode_without_dummy_space(suffix, self._tokenizer)}
        return [
            token_id
            for part in self._layout
            for token_id in ([part] if isinstance(part, int) else texts[part])
        ]


def _encode_without_dummy_space(text: str, tokenizer: Tokenizer) -> list[int]:
    """Encodes a suffix without the space that SentencePiece puts before every text."""
    mark = tokenizer.encode("\n", add_special_tokens=False)
    if mark and tokenizer.token_bytes(mark[0]).startswith(b" "):
        marked = tokenizer.encode_guarded("\n" + text, (), add_special_tokens=False)
        if marked[: len(mark)] == mark:
            return marked[len(mark) :]
    return tokenizer.encode_guarded(text, (), add_special_tokens=False)
