"""Encodes texts into the model's tokens, with the special tokens of its tokenizer around them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ouzel.errors import InvalidRequest
from ouzel.generation import PromptTooLong, ServedModel
from ouzel.prompts.prompt_too_long import too_many_characters
from ouzel.tokenizer.base import FramedText
from ouzel.vectors.chat_texts import ChatTexts
from ouzel.vectors.encoded_text import EncodedText
from ouzel.vectors.foreign_ids import ForeignIds
from ouzel.vectors.pieces import PieceLimit, divide, move_prompt
from ouzel.vectors.reranker_prompt import RerankerPrompt

# Each token is assumed to have at most this many characters; longer texts are refused or cut
# unread.
_CHARS_PER_TOKEN = 64


@dataclass(frozen=True, slots=True)
class TextLimit:
    """Limits the tokens of a text or of a pair: a longer one is cut or refused."""

    max_tokens: int
    cuts: bool  # cuts instead of refusing
    keeps_end: bool = False  # cuts the start of a text instead of its end
    # limits the second text of a pair; then only this text is cut
    max_second_tokens: int | None = None
    field: str = "truncate_prompt_tokens"  # the request's field for `max_tokens`


class TextEncoder:
    """Encodes texts and pairs. It is called from many threads.

    Raises InvalidRequest for a text that is empty or too long.
    """

    def __init__(self, model: ServedModel) -> None:
        info = model.engine.info
        self._tokenizer = model.tokenizer
        self._vocab_size = info.vocab_size
        self._lowers_case = model.sentences is not None and model.sentences.lowers_case
        self._cuts_by_default = model.cuts_long_texts
        self._foreign_ids = ForeignIds(model.tokenizer, lowers_case=self._lowers_case)
        self.max_tokens = info.max_model_len - info.num_reserved_tokens
        # A decoder reads a pair as a prompt, an encoder as two texts.
        is_decoder = info.num_blocks > 0 or info.is_causal
        self._prompt = RerankerPrompt.for_model(model) if is_decoder else None
        self._chats = ChatTexts.for_model(model)

    def limit(
        self, truncate_prompt_tokens: int | None, *, truncate: bool | None, field: str
    ) -> TextLimit:
        """Makes the limit from the request's fields.

        -1 stands for the model's own limit. With `truncate` None, the server's option applies.
        """
        if truncate_prompt_tokens is None:
            return TextLimit(
                self.max_tokens,
                cuts=self._cuts_by_default if truncate is None else truncate,
                field=field,
            )
        if truncate_prompt_tokens == 0 or truncate_prompt_tokens > self.max_tokens:
            raise InvalidRequest(
                f"must be from 1 to {self.max_tokens}, or -1, given {truncate_prompt_tokens}",
                field=field,
            )
        max_tokens = self.max_tokens if truncate_prompt_tokens < 0 else truncate_prompt_tokens
        return TextLimit(max_tokens, cuts=True, field=field)

    def text(
        self,
        text: str,
        limit: TextLimit,
        *,
        field: str,
        prompt: str = "",
        add_special_tokens: bool = True,
    ) -> EncodedText:
        """Encodes a text behind the prompt, or in a chat whose system gives the prompt."""
        if self._chats is not None:
            framed = self._chats.framed(
                prompt, self._short(text, limit, field), add_special_tokens=add_special_tokens
            )
            return self._join(framed, limit, field)
        text = self._short(prompt + text, limit, field)
        if self._lowers_case:
            text = text.lower()
        if not add_special_tokens:
            return self._cut(self._tokenizer.encode(text, add_special_tokens=False), limit, field)
        max_tokens = limit.max_tokens if limit.cuts else None
        encoded = self._tokenizer.encode_pair(
            text, None, max_tokens=max_tokens, keeps_end=limit.keeps_end
        )
        return self._checked(*encoded, limit, field)

    def _join(self, framed: FramedText, limit: TextLimit, field: str) -> EncodedText:
        """Joins a chat again; a text that is too long is cut inside of the chat's marks."""
        token_ids = framed.token_ids
        room = limit.max_tokens - len(framed.before) - len(framed.behind)
        if limit.cuts and len(token_ids) > room:
            num_kept = max(room, 0)
            num_cut = len(token_ids) - num_kept
            token_ids = token_ids[num_cut:] if limit.keeps_end else token_ids[:num_kept]
        joined = [*framed.before, *token_ids, *framed.behind]
        return self._checked(joined, len(joined), limit, field)

    def token_ids(self, token_ids: Sequence[int], limit: TextLimit, *, field: str) -> EncodedText:
        """Checks token ids of the client and takes them unchanged."""
        for position, token_id in enumerate(token_ids):
            if not 0 <= token_id < self._vocab_size:
                path = f"{field}[{position}]"
                raise InvalidRequest(
                    f"must be a token id from 0 to {self._vocab_size - 1}, given {token_id}",
                    field=path,
                )
        self._foreign_ids.check(token_ids[: self.max_tokens])
        return self._cut(token_ids, limit, field)

    def _cut(self, token_ids: Sequence[int], limit: TextLimit, field: str) -> EncodedText:
        taken = list(token_ids)
        if limit.cuts:
            taken = taken[-limit.max_tokens :] if limit.keeps_end else taken[: limit.max_tokens]
        return self._checked(taken, len(taken), limit, field)

    def pair(
        self,
        first: str,
        second: str,
        limit: TextLimit,
        *,
        fields: tuple[str, str],
        instruction: str | None,
    ) -> EncodedText:
        """Encodes a pair of texts.

        If the pair is too long, the error names the field of the second text, or of the first text
        if the first text alone is too long.
        """
        first, second = self._short(first, limit, fields[0]), self._short(second, limit, fields[1])
        try:
            return self._pair(first, second, limit, fields=fields, instruction=instruction)
        except PromptTooLong:
            self.text(first, limit, field=fields[0])
            raise

    def _pair(
        self,
        first: str,
        second: str,
        limit: TextLimit,
        *,
        fields: tuple[str, str],
        instruction: str | None,
    ) -> EncodedText:
        max_tokens = limit.max_tokens if limit.cuts else None
        if self._prompt is not None:
            token_ids = self._prompt.token_ids(
                first,
                second,
                max_tokens=max_tokens,
                instruction=instruction,
                query_field=fields[0],
                keeps_end=limit.keeps_end,
                max_document_tokens=limit.max_second_tokens,
            )
            return self._checked(token_ids, len(token_ids), limit, fields[1])
        _refuse_instruction(instruction)
        encoded = self._tokenizer.encode_pair(
            first,
            second,
            max_tokens=max_tokens,
            keeps_end=limit.keeps_end,
            max_second_tokens=limit.max_second_tokens,
        )
        if limit.max_second_tokens is not None and len(encoded[0]) > limit.max_tokens:
            excess = "leaves no token to the document"
            num_tokens, max_tokens = len(encoded[0]), limit.max_tokens
            raise PromptTooLong(
                excess, num_tokens=num_tokens, max_model_len=max_tokens, field=fields[0]
            )
        return self._checked(*encoded, limit, fields[1])

    def text_pieces(
        self, prompt: str, text: str, limit: PieceLimit, *, field: str
    ) -> list[EncodedText]:
        """Encodes a document without a query, in pieces; the prompt stands before each piece."""
        text = self._short_document(text, limit, field)
        if self._chats is not None:
            framed = self._chats.framed(prompt, text)
        else:
            framed = self._frame_plain(prompt, text)
        if limit.max_document_tokens is not None:  # limits the whole text, as when it is cut
            num_around = len(framed.before) + len(framed.behind)
            limit = replace(
                limit, max_document_tokens=max(limit.max_document_tokens - num_around, 1)
            )
        return self._checked_pieces(framed, limit, fields=(field, field))

    def _frame_plain(self, prompt: str, text: str) -> FramedText:
        whole = prompt + text
        if self._lowers_case:
            whole, prompt = whole.lower(), prompt.lower()
        framed = self._tokenizer.encode_framed(whole, None)
        if not prompt:
            return framed
        return move_prompt(framed, self._tokenizer.encode(prompt, add_special_tokens=False))

    def pair_pieces(
        self,
        first: str,
        second: str,
        limit: PieceLimit,
        *,
        fields: tuple[str, str],
        instruction: str | None,
    ) -> list[EncodedText]:
        """Encodes a query and a document, in pieces; the query stands before each piece."""
        first = self._short(first, TextLimit(self.max_tokens, cuts=limit.cuts_query), fields[0])
        second = self._short_document(second, limit, fields[1])
        if self._prompt is not None:
            return self._checked_pieces(
                self._prompt.framed(first, second, instruction), limit, fields=fields
            )
        _refuse_instruction(instruction)
        max_first_tokens = self.max_tokens // 2 if limit.cuts_query else None
        framed = self._tokenizer.encode_framed(first, second, max_first_tokens=max_first_tokens)
        return self._checked_pieces(framed, limit, fields=fields)

    def _checked_pieces(
        self, framed: FramedText, limit: PieceLimit, *, fields: tuple[str, str]
    ) -> list[EncodedText]:
        max_tokens = limit.max_tokens or self.max_tokens
        limit_of_each = TextLimit(max_tokens, cuts=False)
        return [
            self._checked(piece.token_ids, piece.second_begin, limit_of_each, fields[1])
            for piece in divide(framed, limit, max_tokens=max_tokens, query_field=fields[0])
        ]

    def _short_document(self, text: str, limit: PieceLimit, field: str) -> str:
        """Cuts the characters behind the limits, so that they are not encoded needlessly."""
        limits: list[int] = []
        if limit.max_pieces is not None:
            limits.append(limit.max_pieces * self.max_tokens)
        if limit.max_document_tokens is not None:
            limits.append(limit.max_document_tokens)
        return self._short(text, TextLimit(min(limits), cuts=True), field) if limits else text

    def _short(self, text: str, limit: TextLimit, field: str) -> str:
        max_chars = _CHARS_PER_TOKEN * limit.max_tokens
        if len(text) <= max_chars:
            return text
        if limit.cuts:
            return text[-max_chars:] if limit.keeps_end else text[:max_chars]
        raise too_many_characters(len(text), max_model_len=limit.max_tokens, field=field)

    def _checked(
        self, token_ids: list[int], second_begin: int, limit: TextLimit, field: str
    ) -> EncodedText:
        if not token_ids:
            raise InvalidRequest("must have at least one token, given none", field=field)
        # Only the tokenizer's special tokens are left, which are never cut.
        if len(token_ids) > limit.max_tokens and limit.cuts:
            complaint = (
                f"must be >= {len(token_ids)}, the number of special tokens, "
                f"given {limit.max_tokens}"
            )
            raise InvalidRequest(complaint, field=limit.field)
        if len(token_ids) > limit.max_tokens:
            excess = f"resulted in {len(token_ids)} tokens"
            raise PromptTooLong(
                excess, num_tokens=len(token_ids), max_model_len=limit.max_tokens, field=field
            )
        if max(token_ids) >= self._vocab_size:
            token = self._tokenizer.token_text(max(token_ids))
            raise InvalidRequest(
                f"holds {token!r}, a token that the model does not have", field=field
            )
        return EncodedText(token_ids, second_begin)


def _refuse_instruction(instruction: str | None) -> None:
    if instruction is not None:
        raise InvalidRequest(
            ": this model takes only pairs of texts, without an instruction", field="instruction"
        )
