"""Writes log probabilities in the forms of chat completions and of text completions."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ouzel.generation import Prompt, ServedModel
from ouzel.types.step_output import PositionLogprobs, TokenLogprob

LEAST_LOGPROB = -9999.0  # stands for minus infinity, which JSON lacks


TokenText = Callable[[int], str]


def token_text(model: ServedModel, *, as_token_ids: bool | None) -> TokenText:
    """Returns a function that names a token in logprobs.

    `as_token_ids` is vLLM's `return_tokens_as_token_ids`: distinct tokens with equal texts stay
    apart.
    """
    return "token_id:{}".format if as_token_ids else model.tokenizer.token_text


class TopLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]


class ContentLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ChatLogprobs(msgspec.Struct):
    content: list[ContentLogprob]
    refusal: None = None


class CompletionLogprobs(msgspec.Struct):
    """The logprobs of a text completion. The first token of an echoed prompt has null."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]  # characters from the beginning of the text


class PromptLogprob(msgspec.Struct):
    """The log probability of a prompt token, with vLLM's field names."""

    logprob: float
    rank: int  # 1 for the most likely
    decoded_token: str


PromptLogprobs = list[dict[int, PromptLogprob] | None]
"""The prompt's tokens in order. Each entry maps token ids to logprobs: the prompt's own token and
the most likely ones. The first token is not predicted; its entry is null.
"""


def chat_logprobs(
    positions: Sequence[PositionLogprobs], model: ServedModel, text_of: TokenText
) -> ChatLogprobs:
    return ChatLogprobs([_content_logprob(position, model, text_of) for position in positions])


def sampled_logprob(
    position: PositionLogprobs, model: ServedModel, text_of: TokenText
) -> TopLogprob:
    """Returns the logprob of the sampled token, without alternatives."""
    return _top_logprob(position.sampled, model, text_of)


def prompt_logprobs(positions: Sequence[PositionLogprobs], model: ServedModel) -> PromptLogprobs:
    """Returns vLLM's prompt logprobs. `positions` are all prompt tokens but the first."""
    return [None, *(_by_token_id(position, model) for position in positions)]


def _by_token_id(position: PositionLogprobs, model: ServedModel) -> dict[int, PromptLogprob]:
    assert position.rank is not None
    by_token_id: dict[int, PromptLogprob] = {}
    for rank, entry in ((position.rank, position.sampled), *enumerate(position.top, 1)):
        if entry.token_id not in by_token_id:
            text = model.tokenizer.token_text(entry.token_id)
            by_token_id[entry.token_id] = PromptLogprob(_clamp(entry.logprob), rank, text)
    return by_token_id


def completion_logprobs(
    positions: Sequence[PositionLogprobs],
    model: ServedModel,
    text_of: TokenText,
    num_chars: int,
    *,
    skip_special_tokens: bool,
) -> tuple[CompletionLogprobs, int]:
    """Returns the logprobs of output tokens, and the number of characters up to the last token.

    `num_chars` is the number of characters before the first token. A character counts as soon as
    a token has its first byte.
    """
    hidden = model.tokenizer.special_token_ids if skip_special_tokens else frozenset()
    token_ids = [position.sampled.token_id for position in positions]
    pieces = [
        b"" if token_id in hidden else model.tokenizer.token_bytes(token_id)
        for token_id in token_ids
    ]
    text_offset, num_chars = _text_offsets(pieces, num_chars)
    tokens = list(map(text_of, token_ids))
    token_logprobs: list[float | None] = [
        _clamp(position.sampled.logprob) for position in positions
    ]
    top_logprobs: list[dict[str, float] | None] = [
        _by_text(position, text_of) for position in positions
    ]
    return CompletionLogprobs(tokens, token_logprobs, top_logprobs, text_offset), num_chars


def echoed_logprobs(
    prompt: Prompt, positions: Sequence[PositionLogprobs], model: ServedModel, text_of: TokenText
) -> tuple[CompletionLogprobs, int]:
    """Returns the logprobs of an echoed prompt, and the number of its characters.

    `positions` are all prompt tokens but the first.
    """
    text_offset, num_chars = _text_offsets(_pieces_in_text(prompt, model), 0)
    token_logprobs: list[float | None] = [
        None,
        *(_clamp(position.sampled.logprob) for position in positions),
    ]
    top_logprobs: list[dict[str, float] | None] = [
        None,
        *(_by_text(position, text_of) for position in positions),
    ]
    tokens = list(map(text_of, prompt.token_ids))
    return CompletionLogprobs(tokens, token_logprobs, top_logprobs, text_offset), num_chars


def _pieces_in_text(prompt: Prompt, model: ServedModel) -> list[bytes]:
    """Returns the bytes that each token contributes to the prompt's text.

    A leading special token or space that only the tokenizer added contributes no bytes.
    """
    tokenizer = model.tokenizer
    pieces = [tokenizer.token_bytes(token_id) for token_id in prompt.token_ids]
    first = 0
    if prompt.token_ids[0] in tokenizer.special_token_ids and not prompt.text.startswith(
        pieces[0].decode()
    ):
        pieces[0], first = b"", 1
    if first < len(pieces) and pieces[first].startswith(b" ") and not prompt.text.startswith(" "):
        pieces[first] = pieces[first][1:]
    return pieces


def _text_offsets(pieces: Iterable[bytes], num_chars: int) -> tuple[list[int], int]:
    """Returns the offset of each piece, and the number of characters begun after the last piece.

    `num_chars` is the number of characters that have begun before the first piece.
    """
    offsets = []
    for piece in pieces:
        goes_on = num_chars > 0 and piece != b"" and not _is_first_byte(piece[0])
        offsets.append(num_chars - goes_on)
        num_chars += sum(map(_is_first_byte, piece))
    return offsets, num_chars


def join_logprobs(first: CompletionLogprobs, then: CompletionLogprobs) -> CompletionLogprobs:
    return CompletionLogprobs(
        first.tokens + then.tokens,
        first.token_logprobs + then.token_logprobs,
        first.top_logprobs + then.top_logprobs,
        first.text_offset + then.text_offset,
    )


def keep_top(positions: Sequence[PositionLogprobs], num_top: int) -> Sequence[PositionLogprobs]:
    """Limits each position to `num_top` alternatives; -1 keeps all.

    The engine may have computed more alternatives than one request asks for.
    """
    if num_top == -1 or not positions or len(positions[0].top) <= num_top:
        return positions
    return [msgspec.structs.replace(position, top=position.top[:num_top]) for position in positions]


def _is_first_byte(byte: int) -> bool:
    """Tells whether a UTF-8 character begins with this byte."""
    return byte & 0xC0 != 0x80


def _content_logprob(
    position: PositionLogprobs, model: ServedModel, text_of: TokenText
) -> ContentLogprob:
    sampled = sampled_logprob(position, model, text_of)
    top = [_top_logprob(entry, model, text_of) for entry in position.top]
    return ContentLogprob(sampled.token, sampled.logprob, sampled.bytes, top)


def _top_logprob(entry: TokenLogprob, model: ServedModel, text_of: TokenText) -> TopLogprob:
    token_bytes = model.tokenizer.token_bytes(entry.token_id)
    return TopLogprob(text_of(entry.token_id), _clamp(entry.logprob), list(token_bytes))


def _by_text(position: PositionLogprobs, text_of: TokenText) -> dict[str, float]:
    """Returns the logprobs of the alternatives and of the sampled token, by text.

    If several tokens have the same text, the most likely one counts.
    """
    by_text: dict[str, float] = {}
    for entry in (*position.top, position.sampled):
        text, logprob = text_of(entry.token_id), _clamp(entry.logprob)
        by_text[text] = max(logprob, by_text.get(text, logprob))
    return by_text


def _clamp(logprob: float) -> float:
    return max(logprob, LEAST_LOGPROB)
