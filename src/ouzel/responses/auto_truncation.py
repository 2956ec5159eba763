"""`truncation: auto`: a conversation that does not fit loses its oldest turns.

A turn begins with a user's message, so calls and their outputs go together; leading system messages and the last turn
stay. The answer needs room too: max_output_tokens where it is given, else an eighth of the context.
"""

from collections.abc import Callable, Sequence

from ouzel.errors import ContextLengthExceeded
from ouzel.generation import Prompt
from ouzel.responses.input_items import PlacedMessage

Render = Callable[[Sequence[PlacedMessage]], Prompt]

_SHARE_OF_ANSWER = 8


def render_newest(
    placed: Sequence[PlacedMessage], render: Render, *, max_model_len: int, max_tokens: int | None
) -> Prompt:
    """As many turns as fit. Raises ContextLengthExceeded when the last one alone does not."""
    whole = _fitting(placed, render, max_model_len - (max_tokens or 1))
    if whole is not None:
        return whole
    room = max_model_len - (max_tokens or max_model_len // _SHARE_OF_ANSWER or 1)
    num_leading = next(
        (at for at, each in enumerate(placed) if each.message["role"] not in ("system", "developer")), len(placed)
    )
    starts = [at for at in range(num_leading, len(placed)) if placed[at].message["role"] == "user"]
    cuts = [at for at in starts if at > num_leading]
    leading = placed[:num_leading]
    low, high = 0, len(cuts)  # the first cut that fits is in between; high: none does
    best: Prompt | None = None
    while low < high:
        middle = (low + high) // 2
        prompt = _fitting([*leading, *placed[cuts[middle] :]], render, room)
        if prompt is None:
            low = middle + 1
        else:
            best, high = prompt, middle
    return best or render([*leading, *placed[cuts[-1] if cuts else num_leading :]])


def _fitting(placed: Sequence[PlacedMessage], render: Render, max_prompt_tokens: int) -> Prompt | None:
    try:
        prompt = render(placed)
    except ContextLengthExceeded:
        return None
    return prompt if len(prompt.token_ids) <= max_prompt_tokens else None
