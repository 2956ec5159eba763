"""Log probabilities as chat completions and as completions show them."""

from collections.abc import Callable, Sequence

import msgspec

from ouzel.generation import ServedModel
from ouzel.types import PositionLogprobs, TokenLogprob

LEAST_LOGPROB = -9999.0  # stands for minus infinity, which JSON cannot say


TokenText = Callable[[int], str]


def token_text(model: ServedModel, *, as_token_ids: bool | None) -> TokenText:
    """How tokens are named in logprobs; vLLM's `return_tokens_as_token_ids` keeps those apart that look the same."""
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
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]  # in characters of the text, from its beginning


class PromptLogprob(msgspec.Struct):
    """As vLLM shows it."""

    logprob: float
    rank: int  # 1 for the most likely
    decoded_token: str


PromptLogprobs = list[dict[int, PromptLogprob] | None]
"""By position and token id: the prompt's token and the most likely ones; null for the first, which nothing predicts."""


def chat_logprobs(positions: Sequence[PositionLogprobs], model: ServedModel, text_of: TokenText) -> ChatLogprobs:
    return ChatLogprobs([_content_logprob(position, model, text_of) for position in positions])


def prompt_logprobs(positions: Sequence[PositionLogprobs], model: ServedModel) -> PromptLogprobs:
    """`positions` are those of all prompt tokens but the first."""
    return [None, *(_by_token_id(position, model) for position in positions)]


def _by_token_id(position: PositionLogprobs, model: ServedModel) -> dict[int, PromptLogprob]:
    assert position.rank is not None
    by_token_id: dict[int, PromptLogprob] = {}
    for rank, entry in ((position.rank, position.sampled), *enumerate(position.top, 1)):
        if entry.token_id not in by_token_id:
            text = model.tokenizer.token_text(entry.token_id)
            by_token_id[entry.token_id] = PromptLogprob(_finite(entry.logprob), rank, text)
    return by_token_id


def completion_logprobs(
    positions: Sequence[PositionLogprobs],
    model: ServedModel,
    text_of: TokenText,
    num_chars: int,
    *,
    skip_special_tokens: bool,
) -> tuple[CompletionLogprobs, int]:
    """`num_chars` characters have begun before the first token; returned is how many after the last."""
    hidden = model.tokenizer.special_token_ids if skip_special_tokens else frozenset()
    shown = CompletionLogprobs([], [], [], [])
    for position in positions:
        token_id = position.sampled.token_id
        shown.tokens.append(text_of(token_id))
        shown.token_logprobs.append(_finite(position.sampled.logprob))
        shown.top_logprobs.append(_by_text(position, text_of))
        text_bytes = b"" if token_id in hidden else model.tokenizer.token_bytes(token_id)
        goes_on = num_chars > 0 and text_bytes != b"" and not _is_first_byte(text_bytes[0])
        shown.text_offset.append(num_chars - goes_on)
        num_chars += sum(map(_is_first_byte, text_bytes))
    return shown, num_chars


def _is_first_byte(byte: int) -> bool:
    """Of a character in UTF-8."""
    return byte & 0xC0 != 0x80


def _content_logprob(position: PositionLogprobs, model: ServedModel, text_of: TokenText) -> ContentLogprob:
    sampled = _top_logprob(position.sampled, model, text_of)
    top = [_top_logprob(entry, model, text_of) for entry in position.top]
    return ContentLogprob(sampled.token, sampled.logprob, sampled.bytes, top)


def _top_logprob(entry: TokenLogprob, model: ServedModel, text_of: TokenText) -> TopLogprob:
    token_bytes = model.tokenizer.token_bytes(entry.token_id)
    return TopLogprob(text_of(entry.token_id), _finite(entry.logprob), list(token_bytes))


def _by_text(position: PositionLogprobs, text_of: TokenText) -> dict[str, float]:
    """The alternatives and the sampled token; of tokens with the same text the most likely."""
    by_text: dict[str, float] = {}
    for entry in (*position.top, position.sampled):
        by_text.setdefault(text_of(entry.token_id), _finite(entry.logprob))
    return by_text


def _finite(logprob: float) -> float:
    return max(logprob, LEAST_LOGPROB)
