"""Builds llguidance's version of a model's tokenizer.

llguidance tokenizes forced text with the model's tokenizer and expects the same bytes back.
Settings that change bytes are removed from a private copy: special tokens that text could spell
(llguidance names them by number), normalisation, and the space before a text. Token ids and the
encoding of ordinary text stay.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
from llguidance import LLTokenizer

from ouzel.errors import ModelLoadError
from ouzel.grammar.vocabulary import JsonObject, list_marks


@dataclass(frozen=True, slots=True)
class TokenizerSource:
    """The data from which another process builds the same tokenizer."""

    path: Path  # path of tokenizer.json
    vocab_size: int
    eos_token_ids: tuple[int, ...]


class GrammarTokenizer:
    """A tokenizer of llguidance and its source."""

    def __init__(self, source: TokenizerSource) -> None:
        """Raises OSError, ValueError, and ModelLoadError if the tokenizer cannot be used for
        grammars.
        """
        text = source.path.read_text(encoding="utf-8")
        self.source = source
        self.native = build_tokenizer(
            text, vocab_size=source.vocab_size, eos_token_ids=source.eos_token_ids
        )

    @property
    def vocab_size(self) -> int:
        return self.native.vocab_size


def build_tokenizer(
    tokenizer_json: str, *, vocab_size: int, eos_token_ids: tuple[int, ...]
) -> LLTokenizer:
    """Builds a tokenizer. `vocab_size` is the width of the logits; a larger number of known
    tokens replaces it.

    Holds the GIL for up to a second at 150,000 tokens. Raises ModelLoadError if the tokenizer
    cannot be used for grammars.
    """
    content = json.loads(tokenizer_json)
    num_known = 1 + max(
        [*content["model"]["vocab"].values(), *(t["id"] for t in content["added_tokens"])]
    )
    eos = [token_id for token_id in eos_token_ids if token_id < num_known]
    if not eos:
        raise ModelLoadError("this model has no end token, so a grammar could never end")
    try:
        return LLTokenizer(
            msgspec.json.encode(_sanitise(content)).decode(),
            n_vocab=max(vocab_size, num_known),
            eos_token=eos,
        )
    # The library panics, for example at tokens of over 1,024 bytes; a panic is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise ModelLoadError(f"the tokenizer cannot be used for grammars: {error}") from error


def _sanitise(content: JsonObject) -> JsonObject:
    new_names = {token["content"]: f"<\ue0f0{token['id']}\ue0f0>" for token in list_marks(content)}
    for token in list_marks(content):
        plain = {
            "special": True,
            "normalized": False,
            "lstrip": False,
            "rstrip": False,
            "single_word": False,
        }
        token.update(content=new_names[token["content"]], **plain)
    vocabulary = content["model"]["vocab"]
    for name, new_name in new_names.items():
        if name in vocabulary:
            vocabulary[new_name] = vocabulary.pop(name)
    if _is_byte_level(content.get("decoder")):
        content["normalizer"] = None
        _drop_prefix_space(content.get("pre_tokenizer"))
    return content | {"truncation": None, "padding": None, "post_processor": None}


def _is_byte_level(decoder: JsonObject | None) -> bool:
    return decoder is not None and (
        decoder.get("type") == "ByteLevel" or any(map(_is_byte_level, decoder.get("decoders", ())))
    )


def _drop_prefix_space(pre_tokenizer: JsonObject | None) -> None:
    for part in (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer or {}]):
        if part.get("type") == "ByteLevel":
            part["add_prefix_space"] = False
