"""Reads the `tokenizer.json` of a Hugging Face model directory with the `tokenizers` library."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import tokenizers

from ouzel.checkpoint.model_files import (
    read_model_eos_token_ids,
    read_special_tokens,
    read_tokenizer_json,
)
from ouzel.errors import ModelLoadError
from ouzel.tokenizer.base import Detokenizer, FramedText
from ouzel.tokenizer.byte_table import build_byte_table
from ouzel.tokenizer.control_tokens import find_control_tokens
from ouzel.tokenizer.detokenizer import ByteDetokenizer, WindowedDetokenizer
from ouzel.tokenizer.guarded_encoder import GuardedEncoder, Spans, encode_one
from ouzel.tokenizer.normalizer_growth import check_growth

_MAX_CONTROL_TOKEN_LEN = 256


def load_tokenizer(directory: Path) -> "HuggingFaceTokenizer":
    special_tokens = read_special_tokens(directory)
    library_tokenizer = _read_tokenizer_json(directory / "tokenizer.json")
    return HuggingFaceTokenizer(
        library_tokenizer, special_tokens, read_model_eos_token_ids(directory)
    )


def _read_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise ModelLoadError(
            f"{path} is missing; save it beside the weights, for example with "
            "transformers.AutoTokenizer.from_pretrained(MODEL).save_pretrained(DIRECTORY)"
        )
    try:
        text = read_tokenizer_json(path)
        check_growth(text, path)  # must precede the library's normalisation of the added tokens
        tokenizer = tokenizers.Tokenizer.from_str(text)
    except ModelLoadError:
        raise
    except Exception as error:  # the library has no more specific error for a broken file
        raise ModelLoadError(f"{path} cannot be read: {error}") from error
    longest = max(map(len, find_control_tokens(tokenizer.get_added_tokens_decoder())), default=0)
    if longest > _MAX_CONTROL_TOKEN_LEN:
        limit = f"a control token must have <= {_MAX_CONTROL_TOKEN_LEN} characters"
        raise ModelLoadError(f"{path}: added_tokens: {limit}, given {longest}")
    # Some files still have the limits of the training, which would cut prompts silently.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class HuggingFaceTokenizer:
    """Implements `Tokenizer` for a model directory.

    `model_eos_token_ids` are the end tokens in the model's files; the tokenizer's `eos_token` is
    added to them.
    """

    def __init__(
        self,
        library_tokenizer: tokenizers.Tokenizer,
        special_tokens: Mapping[str, str],
        model_eos_token_ids: tuple[int, ...] = (),
    ) -> None:
        self._library_tokenizer = library_tokenizer
        self.special_tokens = special_tokens
        eos_token_id = library_tokenizer.token_to_id(special_tokens.get("eos_token", ""))
        own = () if eos_token_id is None else (eos_token_id,)
        self.eos_token_ids = tuple(dict.fromkeys((*model_eos_token_ids, *own)))

        vocabulary = library_tokenizer.get_vocab(with_added_tokens=True)
        added = self.added_tokens = (
            library_tokenizer.get_added_tokens_decoder()
        )  # keys are token ids
        self.vocab_size = max(vocabulary.values(), default=-1) + 1
        self.special_token_ids = frozenset(
            token_id for token_id, token in added.items() if token.special
        )
        self.control_tokens = find_control_tokens(added)
        unknown = {
            special_tokens.get("unk_token", ""),
            getattr(library_tokenizer.model, "unk_token", None) or "",
        }
        unknown_ids = frozenset(vocabulary[token] for token in unknown if token in vocabulary)
        self._guarded_encoder = GuardedEncoder(library_tokenizer, self.control_tokens, unknown_ids)
        self._ids = frozenset(vocabulary.values())
        self._table = build_byte_table(
            _read_decoder(library_tokenizer),
            {token_id: token for token, token_id in vocabulary.items()},
        )
        if self._table is not None:
            self._shown_pieces: dict[frozenset[int], list[bytes]] = {
                frozenset(): self._table.pieces
            }

    @property
    def spaces_special_tokens(self) -> bool:
        for token_id in self.special_token_ids:
            text = self.decode([token_id], skip_special_tokens=False)
            if self.decode([token_id, token_id], skip_special_tokens=False) != text + text:
                return True
        return False

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return encode_one(self._library_tokenizer, text, add_special_tokens=add_special_tokens).ids

    def encode_guarded(self, text: str, spans: Spans, *, add_special_tokens: bool) -> list[int]:
        return self._guarded_encoder.encode(text, spans, add_special_tokens=add_special_tokens)

    def encode_pair(
        self,
        first: str,
        second: str | None,
        *,
        max_tokens: int | None,
        keeps_end: bool = False,
        max_second_tokens: int | None = None,
    ) -> tuple[list[int], int]:
        library = self._library_tokenizer
        encodings = [encode_one(library, text) for text in (first, second) if text is not None]
        lens = [len(each) for each in encodings]
        room = None
        if max_tokens is not None:
            room = max_tokens - library.num_special_tokens_to_add(second is not None)
        if second is not None and max_second_tokens is not None:
            lens = shorten_second(lens, room, max_second_tokens)
        elif room is not None:
            lens = shorten(lens, room)
        for encoding, length in zip(encodings, lens, strict=True):
            encoding.truncate(length, direction="left" if keeps_end else "right")
        whole = library.post_process(
            encodings[0], encodings[1] if len(encodings) > 1 else None, True
        )
        types = whole.type_ids
        return whole.ids, types.index(1) if 1 in types else len(types)

    def encode_framed(
        self, first: str, second: str | None, *, max_first_tokens: int | None = None
    ) -> FramedText:
        library = self._library_tokenizer
        encodings = [encode_one(library, text) for text in (first, second) if text is not None]
        if second is not None and max_first_tokens is not None:
            encodings[0].truncate(max_first_tokens)
        whole = library.post_process(
            encodings[0], encodings[1] if len(encodings) > 1 else None, True
        )
        ids, types, sequences = whole.ids, whole.type_ids, whole.sequence_ids
        last = len(encodings) - 1
        begin = sequences.index(last) if last in sequences else len(ids)
        end = begin + len(encodings[-1])
        return FramedText(
            ids[:begin], ids[begin:end], ids[end:], types.index(1) if 1 in types else None
        )

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        if self._table is None:
            return self._decode_with_library(token_ids, skip_special_tokens=skip_special_tokens)
        detokenizer = self.detokenizer(skip_special_tokens=skip_special_tokens)
        return detokenizer.feed(token_ids) + detokenizer.finish()

    def token_id(self, token: str) -> int | None:
        return self._library_tokenizer.token_to_id(token)

    def token_text(self, token_id: int) -> str:
        if self._table is None:
            return self._decode_with_library([token_id], skip_special_tokens=False)
        return self.token_bytes(token_id).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        if self._table is None:
            return self.token_text(token_id).encode()
        return self._table.pieces[token_id] if token_id < len(self._table.pieces) else b""

    def detokenizer(
        self,
        *,
        skip_special_tokens: bool = True,
        shown_special_tokens: frozenset[str] = frozenset(),
        prompt_token_ids: Sequence[int] = (),
    ) -> Detokenizer:
        shown_ids = {self._library_tokenizer.token_to_id(token) for token in shown_special_tokens}
        hidden_ids = self.special_token_ids - shown_ids if skip_special_tokens else frozenset()
        if self._table is not None:
            return ByteDetokenizer(
                self._table, self._pieces_without(hidden_ids, self._table.pieces), prompt_token_ids
            )
        decode = partial(
            self._decode_with_library, skip_special_tokens=hidden_ids == self.special_token_ids
        )
        return WindowedDetokenizer(decode, self._ids - hidden_ids, prompt_token_ids)

    def _pieces_without(self, hidden_ids: frozenset[int], pieces: list[bytes]) -> list[bytes]:
        """Returns the pieces with empty bytes for `hidden_ids`. It is cached, because a server uses
        two or three sets.
        """
        if hidden_ids not in self._shown_pieces:
            self._shown_pieces[hidden_ids] = [
                b"" if id_ in hidden_ids else piece for id_, piece in enumerate(pieces)
            ]
        return self._shown_pieces[hidden_ids]

    def _decode_with_library(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        known_ids = [token_id for token_id in token_ids if token_id in self._ids]
        return self._library_tokenizer.decode(known_ids, skip_special_tokens=skip_special_tokens)


def shorten(lens: list[int], room: int) -> list[int]:
    """Returns lengths with a sum of at most `room`. The longest text is cut first, as in
    transformers.
    """
    room = max(room, 0)
    shortest = min(lens)
    if len(lens) == 1 or sum(lens) <= room:
        return [min(length, room) for length in lens]
    half = room // 2
    if shortest > half:
        return [half, room - half] if lens[0] <= lens[1] else [room - half, half]
    longer = room - shortest
    shortest_place = lens.index(shortest)
    return [shortest if place == shortest_place else longer for place in range(len(lens))]


def shorten_second(lens: list[int], room: int | None, max_second: int) -> list[int]:
    """Returns both lengths, the second cut to `max_second` and to the remaining room, but to at
    least 1.
    """
    first, second = lens
    most = max_second if room is None else min(max_second, room - first)
    return [first, min(second, max(most, 1))]


def _read_decoder(library_tokenizer: tokenizers.Tokenizer) -> dict[str, object] | None:
    """Returns the `decoder` entry of `tokenizer.json` without serialising the whole vocabulary."""
    decoder = library_tokenizer.decoder
    return None if decoder is None else json.loads(decoder.__getstate__())
