"""Drops the oldest turns of a conversation that does not fit, if the request allows it.

A turn begins with a user message, so tool calls stay with their outputs. Leading system messages
and the last turn always stay. Room for the answer is the request's limit of tokens, if that is less
than the context, else an eighth of the context.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TypeVar

from ouzel.errors import ContextLengthExceeded
from ouzel.generation import Prompt

logger = logging.getLogger(__name__)

Message = TypeVar("Message")

_SHARE_OF_ANSWER = 8


def num_leading(roles: Iterable[object]) -> int:
    """Returns the number of system messages before all other messages."""
    return sum(1 for _ in takewhile(("system", "developer").__contains__, roles))


def room_for_prompt(max_model_len: int, max_tokens: int | None) -> int:
    """Returns the longest prompt, in tokens, that leaves room for an answer of `max_tokens`."""
    is_limited = max_tokens is not None and max_tokens < max_model_len
    return max_model_len - (
        (max_tokens if is_limited else None) or max_model_len // _SHARE_OF_ANSWER or 1
    )


def render_newest(
    messages: Sequence[Message],
    render: Callable[[Sequence[Message]], Prompt],
    *,
    role_of: Callable[[Message], object],
    max_model_len: int,
    max_tokens: int | None,
) -> Prompt:
    """Renders as many of the newest turns as fit.

    Raises ContextLengthExceeded if the last turn alone does not fit.
    """
    room = room_for_prompt(max_model_len, max_tokens)
    if max_tokens is not None and max_tokens >= max_model_len:
        max_tokens = None
    whole = _render_if_fits(messages, render, max_model_len - (max_tokens or 1))
    if whole is not None:
        return whole
    roles = [role_of(message) for message in messages]
    first = num_leading(roles)
    starts = [at for at in range(first, len(roles)) if roles[at] == "user"]
    cuts = [at for at in starts if at > first]
    leading = messages[:first]
    # The first cut that fits is in cuts[low:high]; if none of them fits, it is cuts[high].
    low, high = 0, len(cuts)
    best: Prompt | None = None
    while low < high:
        middle = (low + high) // 2
        prompt = _render_if_fits([*leading, *messages[cuts[middle] :]], render, room)
        if prompt is None:
            low = middle + 1
        else:
            best, high = prompt, middle
    cut = cuts[min(high, len(cuts) - 1)] if cuts else first
    logger.info(
        "dropped the %d oldest of %d messages, which do not fit", cut - first, len(messages)
    )
    return best or render([*leading, *messages[cut:]])


def _render_if_fits(
    messages: Sequence[Message],
    render: Callable[[Sequence[Message]], Prompt],
    max_prompt_tokens: int,
) -> Prompt | None:
    try:
        prompt = render(messages)
    except ContextLengthExceeded:
        return None
    return prompt if len(prompt.token_ids) <= max_prompt_tokens else None
