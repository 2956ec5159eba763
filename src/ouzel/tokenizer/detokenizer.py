"""Turns token ids into text: with a byte table, or else with the library's decoder."""

import codecs
from collections.abc import Callable, Sequence

from ouzel.tokenizer.byte_table import ByteTable

_REPLACEMENT = "\ufffd"


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _REPLACEMENT * (error.end - error.start), error.end


codecs.register_error("ouzel.replace_each_byte", _replace_each_byte)


class ByteDetokenizer:
    """Looks up the bytes of tokens and decodes UTF-8 incrementally.

    `pieces` are the bytes by token id: the table's, or a copy without special tokens.
    """

    def __init__(
        self, table: ByteTable, pieces: list[bytes], prompt_token_ids: Sequence[int]
    ) -> None:
        self._pieces = pieces
        self._num_pieces = len(pieces)
        self._errors = "ouzel.replace_each_byte" if table.replaces_each_byte else "replace"
        self._pending = b""  # the beginning of a character
        self._start_to_strip = ""
        # A prompt may end inside a character. At most three of its last tokens contain the
        # beginning, so eight are enough.
        self.feed(prompt_token_ids[-8:])
        self._start_to_strip = "" if prompt_token_ids else table.start_to_strip

    def feed(self, token_ids: Sequence[int]) -> str:
        pieces, num_pieces = self._pieces, self._num_pieces
        new = [pieces[token_id] if token_id < num_pieces else b"" for token_id in token_ids]
        data = b"".join((self._pending, *new))
        text, num_decoded = codecs.utf_8_decode(data, self._errors, False)
        self._pending = data[num_decoded:]
        if self._start_to_strip and text:
            text = text.removeprefix(self._start_to_strip)
            self._start_to_strip = ""
        return text

    def finish(self) -> str:
        text, _ = codecs.utf_8_decode(self._pending, self._errors, True)
        self._pending = b""
        return text


class WindowedDetokenizer:
    """Detokenizes with any other decoder: it decodes a short window again for each token, and
    returns the new text at the end.

    The window has two parts: the last tokens whose text has been returned (spaces depend on the
    token before), and the tokens that are held back.
    """

    _MAX_CONTEXT = 6  # prompt tokens in the first window
    # After this many held tokens, U+FFFD at the end is not the beginning of a character.
    _MAX_HELD = 8

    def __init__(
        self,
        decode: Callable[[list[int]], str],
        ids_with_text: frozenset[int],
        prompt_token_ids: Sequence[int],
    ) -> None:
        self._decode = decode
        # unknown and skipped ids would push the context out of the window
        self._ids_with_text = ids_with_text
        context = self._with_text(prompt_token_ids)[-self._MAX_CONTEXT :]
        self._window = context
        self._num_context = len(context)  # context tokens in the window
        self._context_text = decode(context)  # text of the context tokens

    def feed(self, token_ids: Sequence[int]) -> str:
        return "".join([self._feed_one(token_id) for token_id in self._with_text(token_ids)])

    def finish(self) -> str:
        return self._decode(self._window)[len(self._context_text) :]

    def _with_text(self, token_ids: Sequence[int]) -> list[int]:
        return [token_id for token_id in token_ids if token_id in self._ids_with_text]

    def _feed_one(self, token_id: int) -> str:
        self._window.append(token_id)
        text = self._decode(self._window)
        num_held = len(self._window) - self._num_context
        may_go_on = text.endswith(_REPLACEMENT) and num_held < self._MAX_HELD
        if may_go_on or len(text) <= len(self._context_text):
            return ""
        new = text[len(self._context_text) :]
        self._window = self._window[self._num_context :]
        self._num_context = len(self._window)
        self._context_text = self._decode(self._window)
        return new
