"""Makes the limit of a request's reasoning, with the tokens by which the engine finds it."""

from collections.abc import Callable
from functools import lru_cache

from ouzel.errors import InvalidRequest
from ouzel.parsers.base import Reasoning, ReasoningStage
from ouzel.parsers.registry import OutputFormat
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_request import ReasoningBudget

PARAM = "thinking_token_budget"
_WHITESPACE = b" \t\r\n"


def reasoning_budget(
    max_tokens: int,
    *,
    output_format: OutputFormat,
    tokenizer: Tokenizer,
    prompt_text: str,
    continues_prompt: bool,
    has_tools: bool = False,
    is_required: bool = True,
) -> ReasoningBudget | None:
    """Makes the budget of a request; None for a model that does not reason.

    With `has_tools`, the mark of a call may end the reasoning. A budget that `is_required` comes
    from the request; any other comes with a grammar, which spells the marks of the reasoning
    exactly. Raises InvalidRequest.
    """
    marks = output_format.reasoning.reasoning if output_format.reasoning else None
    if marks is None:
        return None
    if is_required and not marks.are_exact:
        raise InvalidRequest(
            ": cannot limit this model's reasoning, because its marks are patterns, "
            f"given {max_tokens}",
            field=PARAM,
        )
    starts, ends = _marks_as_bytes(marks)
    stage = marks.stage_after(prompt_text, continues_prompt=continues_prompt)
    return ReasoningBudget(
        max_tokens=max_tokens,
        end_token_ids=tuple(tokenizer.encode(marks.end, add_special_tokens=False)),
        starts=starts,
        ends=ends,
        pieces=_pieces(tokenizer, (*starts, *ends)),
        is_open=stage is ReasoningStage.OPEN,
        may_repeat=output_format.is_interleaved,
        call_token_id=tokenizer.token_id(output_format.call_mark)
        if has_tools and output_format.call_mark
        else None,
        is_required=is_required,
    )


def prepare_reasoning_budgets(output_format: OutputFormat, tokenizer: Tokenizer) -> None:
    """Finds the pieces of marks in the vocabulary, before the first request must wait for it."""
    marks = output_format.reasoning.reasoning if output_format.reasoning else None
    if marks is not None:
        starts, ends = _marks_as_bytes(marks)
        _pieces(tokenizer, (*starts, *ends))


def _marks_as_bytes(marks: Reasoning) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    return tuple(mark.encode() for mark in marks.starts), tuple(
        mark.encode() for mark in marks.ends
    )


@lru_cache(maxsize=8)
def _pieces(tokenizer: Tokenizer, marks: tuple[bytes, ...]) -> dict[int, bytes]:
    """Returns the bytes of every token that is whitespace or can be part of a mark: some
    hundreds.
    """
    can_be_part = _part_of_a_mark(marks)
    pieces = (
        (token_id, tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size)
    )
    return {token_id: piece for token_id, piece in pieces if piece and can_be_part(piece)}


def _part_of_a_mark(marks: tuple[bytes, ...]) -> Callable[[bytes], bool]:
    """Makes the check of one token, cheapest tests first: a request may wait for all tokens."""
    beginnings = tuple({mark[:num] for mark in marks for num in range(1, len(mark) + 1)})
    endings = tuple({mark[num:] for mark in marks for num in range(len(mark))})
    inner = {
        mark[i:j] for mark in marks for i in range(len(mark)) for j in range(i + 1, len(mark) + 1)
    }
    shortest = min(map(len, marks))

    def can_be_part(piece: bytes) -> bool:
        if piece in inner or piece.endswith(beginnings) or piece.startswith(endings):
            return True
        has_mark = len(piece) > shortest and any(mark in piece for mark in marks)
        return has_mark or not piece.strip(_WHITESPACE)

    return can_be_part
