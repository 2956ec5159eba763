"""A control token that is spelled in a message is text: it is kept apart from what the template writes.

A separator, one character that nobody uses, is put behind the first character of every such spelling before the
template renders. The rendered text is cut at the separators and each piece tokenised by itself, so no piece holds the
whole spelling. Chats without such spellings, nearly all, are tokenised as before, in one piece.
"""

import re
from collections.abc import Callable, Iterator

from ouzel.prompts.messages import Message
from ouzel.tokenizer.base import Tokenizer

_SEPARATORS = [chr(code) for code in range(0xF8FF, 0xF800, -1)]  # Unicode's private use
_MARKUP_KEYS = ("role", "type")  # whose values the template's branches compare


class SpelledMarks:
    """Finds and parts the spellings of one tokenizer's control tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        spellings = [tokenizer.token_text(token_id) for token_id in tokenizer.special_token_ids]
        ordered = sorted((spelling for spelling in spellings if len(spelling) > 1), key=len, reverse=True)
        self._spelling = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def separated(self, messages: list[Message]) -> tuple[list[Message], str]:
        """Returns the messages with separators in them, and the separator; "" when nothing had to be done."""
        texts = list(_texts(messages))
        if self._spelling is None or not any(map(self._spelling.search, texts)):
            return messages, ""
        used = set().union(*texts)
        separator = next(char for char in _SEPARATORS if char not in used)
        spelling = self._spelling

        def separate(text: str) -> str:
            return spelling.sub(lambda found: found[0][:1] + separator + found[0][1:], text)

        separated = [_mapped(message, separate) for message in messages]
        assert all(isinstance(message, dict) for message in separated)
        return [message for message in separated if isinstance(message, dict)], separator

    def token_ids(self, text: str, separator: str, *, add_special_tokens: bool) -> list[int]:
        """Encodes a rendered text, in one piece where pieces would add spaces: such a tokenizer leaves no other way."""
        whole = text.replace(separator, "") if separator else text
        if not separator or separator not in text:
            return self._tokenizer.encode(whole, add_special_tokens=add_special_tokens)
        first, *others = text.split(separator)
        token_ids = self._tokenizer.encode(first, add_special_tokens=add_special_tokens)
        for piece in others:
            token_ids += self._tokenizer.encode(piece, add_special_tokens=False)
        in_one_piece = self._tokenizer.encode(whole, add_special_tokens=add_special_tokens)
        same = [self._tokenizer.decode(ids, skip_special_tokens=False) for ids in (token_ids, in_one_piece)]
        return token_ids if same[0] == same[1] else in_one_piece


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, entry in value.items():
                if key not in _MARKUP_KEYS:
                    yield from _texts(entry)
        case list():
            for entry in value:
                yield from _texts(entry)


def _mapped(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: entry if key in _MARKUP_KEYS else _mapped(entry, change) for key, entry in value.items()}
        case list():
            return [_mapped(entry, change) for entry in value]
        case _:
            return value
