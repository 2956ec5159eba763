"""Encodes a text with control tokens at known places only; other spellings of them are text.

Nearly always the library's ids are right: they contain exactly the expected control tokens, in
order. Otherwise a guard encodes the text again. A guard is the same tokenizer, even with the same
model, but its control tokens are spelled with a secret in front, and only the expected ones get the
secret in the text. So the surrounding text is normalised, split and encoded as usual, and a plain
spelling of a control token is ordinary text.

A model that has a control token in its own vocabulary may produce it from the spelling (a Unigram
model does). Such a guard gets a copy of the model that cannot produce these entries.
"""

import itertools
import json
import secrets
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # the content of tokenizer.json

import tokenizers

from ouzel.errors import STOPS, InvalidRequest

# (begin, end) of each control token in a text, ascending.
Spans = Sequence[tuple[int, int]]

_SECRET = f"~{secrets.randbits(64):020d}^"  # ASCII without letters: normalisers leave it unchanged

_MAX_REASON_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Guard:
    """Holds a tokenizer whose control tokens are spelled with the secret."""

    library_tokenizer: tokenizers.Tokenizer
    ids: Mapping[int, int]  # ids of its added tokens -> ids in the original tokenizer


class GuardedEncoder:
    """Encodes texts with marked control tokens. It is thread-safe.

    `unknown_ids` are the ids of unknown tokens, which any text may produce.
    """

    def __init__(
        self,
        library_tokenizer: tokenizers.Tokenizer,
        control_tokens: Mapping[str, int],
        unknown_ids: frozenset[int] = frozenset(),
    ) -> None:
        self._library_tokenizer = library_tokenizer
        self._control_tokens = control_tokens
        self._checked_ids = frozenset(control_tokens.values()) - unknown_ids
        self._unchecked = [
            text for text, token_id in control_tokens.items() if token_id in unknown_ids
        ]
        model = library_tokenizer.model
        self._ids_of_model = frozenset(
            id_ for id_ in self._checked_ids if model.id_to_token(id_) is not None
        )
        # Normalisation may remove a control token, or create one without a spelling in the text.
        self._is_searched_normalised = _changes_text(library_tokenizer.normalizer) and any(
            token.normalized and token.content in control_tokens
            for token in library_tokenizer.get_added_tokens_decoder().values()
        )
        self._guards: dict[tuple[bool, bool], _Guard] = {}
        self._lock = threading.Lock()

    def encode(self, text: str, spans: Spans, *, add_special_tokens: bool) -> list[int]:
        """Encodes a text. Raises InvalidRequest for half a surrogate pair."""
        expected = [self._control_tokens[text[begin:end]] for begin, end in spans]
        expected = [token_id for token_id in expected if token_id in self._checked_ids]
        has_unchecked = any(spelling in text for spelling in self._unchecked)
        if not self._is_searched_normalised and not has_unchecked:
            encoding = encode_one(self._library_tokenizer, text)
            if self._control_ids(encoding.ids) == expected:
                return self._with_special_tokens(encoding, encoding.ids, add_special_tokens)
        encoding, token_ids = self._encode_guarded(text, spans, searches_normalised=True)
        if self._control_ids(token_ids) != expected and _goes_on_combining(text, spans):
            encoding, token_ids = self._encode_guarded(text, spans, searches_normalised=False)
        return self._with_special_tokens(encoding, token_ids, add_special_tokens)

    def _control_ids(self, token_ids: Sequence[int]) -> list[int]:
        checked_ids = self._checked_ids
        return [token_id for token_id in token_ids if token_id in checked_ids]

    def _with_special_tokens(
        self, encoding: tokenizers.Encoding, token_ids: list[int], add_special_tokens: bool
    ) -> list[int]:
        """Adds the library's special tokens around `token_ids`, which replace the ids of
        `encoding`.
        """
        if not add_special_tokens:
            return token_ids
        whole = self._library_tokenizer.post_process(encoding, None, True)
        own = iter(token_ids)
        return [
            id_ if is_new else next(own)
            for id_, is_new in zip(whole.ids, whole.special_tokens_mask, strict=True)
        ]

    def _encode_guarded(
        self, text: str, spans: Spans, *, searches_normalised: bool
    ) -> tuple[tokenizers.Encoding, list[int]]:
        ends = [0, *(begin for begin, _ in spans), len(text)]
        spelled = _SECRET.join(text[begin:end] for begin, end in itertools.pairwise(ends))
        for has_own_model in (False, True):
            guard = self._guard(has_own_model, searches_normalised)
            encoding = encode_one(guard.library_tokenizer, spelled)
            if self._ids_of_model.isdisjoint(encoding.ids):
                break
        return encoding, [guard.ids.get(token_id, token_id) for token_id in encoding.ids]

    def _guard(self, has_own_model: bool, searches_normalised: bool) -> _Guard:
        """Returns the cached guard with these properties, or makes it; few servers ever need
        one.
        """
        key = has_own_model, searches_normalised
        with self._lock:
            if key not in self._guards:
                model = self._library_tokenizer.model
                if has_own_model:
                    model = _without_tokens(model, self._ids_of_model)
                self._guards[key] = self._make_guard(model, searches_normalised)
            return self._guards[key]

    def _make_guard(self, model: tokenizers.models.Model, searches_normalised: bool) -> _Guard:
        original = self._library_tokenizer
        guard = tokenizers.Tokenizer(model)
        for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            if getattr(original, part) is not None:
                setattr(guard, part, getattr(original, part))
        # The library numbers new tokens from the size of the vocabulary; such an id may be taken.
        ids = original.get_vocab(with_added_tokens=False).values()
        num_taken = max(ids, default=-1) + 1 - len(ids)
        guard.add_tokens(
            [
                tokenizers.AddedToken(f"{_SECRET}{number}", normalized=False)
                for number in range(num_taken)
            ]
        )
        ids_by_spelling: dict[str, int] = {}
        for token_id, token in sorted(original.get_added_tokens_decoder().items()):
            if token.content in self._control_tokens:
                ids_by_spelling[_SECRET + token.content] = token_id
                guard.add_tokens(
                    [_respelled(token, normalized=token.normalized and searches_normalised)]
                )
            else:
                ids_by_spelling[token.content] = token_id
                guard.add_tokens([token])
        own_ids = {spelling: guard.token_to_id(spelling) for spelling in ids_by_spelling}
        ids_by_own_id = {
            own_id: ids_by_spelling[spelling]
            for spelling, own_id in own_ids.items()
            if own_id is not None
        }
        return _Guard(guard, ids_by_own_id)


def encode_one(
    library_tokenizer: tokenizers.Tokenizer, text: str, *, add_special_tokens: bool = False
) -> tokenizers.Encoding:
    """Encodes one text with the library.

    Raises InvalidRequest for half a surrogate pair, and for a text that the library refuses.
    """
    try:
        # The library's encode() holds the GIL, one second per megabyte; a batch of one does not.
        return library_tokenizer.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0]
    except TypeError as error:  # a lone surrogate: legal in JSON, not in Unicode text
        raise InvalidRequest(
            "the text contains half of a surrogate pair, which is not a character"
        ) from error
    except STOPS:
        raise
    # A panic in the library is not an Exception: a regular expression exceeded its step limit.
    except BaseException as error:
        reason = str(error)[:_MAX_REASON_CHARS]
        raise InvalidRequest(f"the model's tokenizer cannot read this text: {reason}") from error


def _changes_text(normalizer: tokenizers.normalizers.Normalizer | None) -> bool:
    return normalizer is not None and json.loads(normalizer.__getstate__()) != {
        "type": "Sequence",
        "normalizers": [],
    }


def _goes_on_combining(text: str, spans: Spans) -> bool:
    """Tells whether a control token is followed by a combining character, which normalisation may
    join to it.
    """
    return any(unicodedata.combining(text[end]) for _, end in spans if end < len(text))


def _respelled(token: tokenizers.AddedToken, *, normalized: bool) -> tokenizers.AddedToken:
    return tokenizers.AddedToken(
        _SECRET + token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=normalized,
        special=token.special,
    )


def _without_tokens(
    model: tokenizers.models.Model, token_ids: frozenset[int]
) -> tokenizers.models.Model:
    """Returns a copy of the model that cannot produce these ids: entries are respelled, and their
    merges removed.
    """
    content: dict[str, Any] = json.loads(model.__getstate__())
    old = {model.id_to_token(token_id) for token_id in token_ids}
    new = {spelling: f"{_SECRET}{spelling}" for spelling in old}
    vocabulary = content["vocab"]
    if isinstance(vocabulary, list):
        content["vocab"] = [[new.get(spelling, spelling), score] for spelling, score in vocabulary]
    else:
        content["vocab"] = {
            new.get(spelling, spelling): token_id for spelling, token_id in vocabulary.items()
        }
    if "merges" in content:
        prefix = content.get("continuing_subword_prefix") or ""
        pairs = [
            merge.split(" ") if isinstance(merge, str) else merge for merge in content["merges"]
        ]
        content["merges"] = [
            [left, right]
            for left, right in pairs
            if old.isdisjoint((left, right, left + right.removeprefix(prefix)))
        ]
    whole = {"version": "1.0", "added_tokens": [], "model": content}
    changed: tokenizers.models.Model = tokenizers.Tokenizer.from_str(json.dumps(whole)).model
    return changed
