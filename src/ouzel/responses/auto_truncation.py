"""With `truncation: auto` a conversation that does not fit loses its oldest turns.

A turn begins with a user's message, so calls and their outputs go together; leading system messages and the last turn
stay. The answer needs room too: max_output_tokens where it is given, and less than the context, else an eighth of it.
"""

from collections.abc import Callable, Sequence

from ouzel.errors import ContextLengthExceeded
from ouzel.generation import Prompt
from ouzel.responses.input_items import InputMessage

Render = Callable[[Sequence[InputMessage]], Prompt]

_SHARE_OF_ANSWER = 8


def render_newest(
    messages: Sequence[InputMessage], render: Render, *, max_model_len: int, max_tokens: int | None
) -> Prompt:
    """Renders as many turns as fit. Raises ContextLengthExceeded when the last one alone does not."""
    if max_tokens is not None and max_tokens >= max_model_len:
        max_tokens = None
    whole = _render_if_fits(messages, render, max_model_len - (max_tokens or 1))
    if whole is not None:
        return whole
    room = max_model_len - (max_tokens or max_model_len // _SHARE_OF_ANSWER or 1)
    num_leading = next(
        (at for at, each in enumerate(messages) if each.fields["role"] not in ("system", "developer")), len(messages)
    )
    starts = [at for at in range(num_leading, len(messages)) if messages[at].fields["role"] == "user"]
    cuts = [at for at in starts if at > num_leading]
    leading = messages[:num_leading]
    low, high = 0, len(cuts)  # the first cut that fits is in between; high: none does
    best: Prompt | None = None
    while low < high:
        middle = (low + high) // 2
        prompt = _render_if_fits([*leading, *messages[cuts[middle] :]], render, room)
        if prompt is None:
            low = middle + 1
        else:
            best, high = prompt, middle
    return best or render([*leading, *messages[cuts[-1] if cuts else num_leading :]])


def _render_if_fits(messages: Sequence[InputMessage], render: Render, max_prompt_tokens: int) -> Prompt | None:
    try:
        prompt = render(messages)
    except ContextLengthExceeded:
        return None
    return prompt if len(prompt.token_ids) <= max_prompt_tokens else None
