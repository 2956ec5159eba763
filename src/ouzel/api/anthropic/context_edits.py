"""Applies context edits, which remove old thinking and old tool results from the prompt, in order.

An edit replaces turns. It is skipped, and missing in the answer, if it changes nothing, has not
reached its trigger, or clears fewer tokens than `clear_at_least`.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import assert_never

from ouzel.api.anthropic.context_management import (
    AllThinking,
    ClearedThinking,
    ClearedToolUses,
    ClearThinking,
    ClearToolUses,
    Edit,
    NumInputTokens,
    ThinkingTurns,
    ToolUses,
)
from ouzel.api.anthropic.turn import Turn
from ouzel.wire.decode import JsonObject

_DEFAULT_TRIGGER = NumInputTokens(100_000)
_DEFAULT_NUM_KEPT = 3
_PLACEHOLDER = "[The result of this old tool call was left out to save space.]"

CountTokens = Callable[[Sequence[Turn]], int]


@dataclass(frozen=True)
class Draft:
    """The turns after some of the edits.

    Tokens are counted when an edit needs their number.
    """

    turns: list[Turn]
    count_tokens: CountTokens

    @cached_property
    def num_tokens(self) -> int:
        return self.count_tokens(self.turns)


def apply_edits(
    edits: Sequence[Edit], turns: list[Turn], count_tokens: CountTokens
) -> tuple[list[Turn], list[ClearedThinking | ClearedToolUses]]:
    """Returns the remaining turns, and the edits that were applied."""
    draft = Draft(turns, count_tokens)
    applied: list[ClearedThinking | ClearedToolUses] = []
    for edit in edits:
        match edit:
            case ClearThinking():
                left, num_cleared = _clear_thinking(draft.turns, edit)
                at_least = 0
            case ClearToolUses():
                left, num_cleared = _clear_results(draft, edit)
                at_least = 0 if edit.clear_at_least is None else edit.clear_at_least.value
            case unreachable:
                assert_never(unreachable)
        if num_cleared == 0 or left == draft.turns:
            continue
        edited = Draft(left, count_tokens)
        num_tokens = max(draft.num_tokens - edited.num_tokens, 0)
        if num_tokens < at_least:
            continue
        draft = edited
        account = ClearedThinking if isinstance(edit, ClearThinking) else ClearedToolUses
        applied.append(account(num_cleared, num_tokens))
    return draft.turns, applied


def _clear_thinking(turns: Sequence[Turn], edit: ClearThinking) -> tuple[list[Turn], int]:
    """Returns the turns without old thinking, and the number of turns that lost theirs.

    A turn of the assistant includes the results of its tools; it ends when the user speaks.
    """
    match edit.keep:
        case None:
            num_kept = 1
        case ThinkingTurns(value=value):
            num_kept = value
        case "all" | AllThinking():
            return list(turns), 0
        case unreachable:
            assert_never(unreachable)
    num_user_turns = 0
    # positions of the messages with thinking, by the assistant's turn
    thinking: dict[int, list[int]] = {}
    for position, turn in enumerate(turns):
        num_user_turns += turn.role == "user"
        if turn.reasoning:
            thinking.setdefault(num_user_turns, []).append(position)
    old = list(thinking.values())[: max(len(thinking) - num_kept, 0)]
    cleared = {position for positions in old for position in positions}
    left = [replace(turn, reasoning=[]) if at in cleared else turn for at, turn in enumerate(turns)]
    return left, len(old)


def _clear_results(draft: Draft, edit: ClearToolUses) -> tuple[list[Turn], int]:
    ids = [call["id"] for turn in draft.turns for call in turn.calls]
    num_kept = _DEFAULT_NUM_KEPT if edit.keep is None else edit.keep.value
    excluded = frozenset(edit.exclude_tools or ())
    old = set(ids[: max(len(ids) - num_kept, 0)])
    cleared = {
        turn.answered["tool_call_id"]
        for turn in draft.turns
        if turn.role == "tool"
        and turn.answered["tool_call_id"] in old
        and turn.answered["name"] not in excluded
    }
    if not cleared or not _is_reached(edit.trigger or _DEFAULT_TRIGGER, draft, len(ids)):
        return draft.turns, 0
    names = edit.clear_tool_inputs
    clears_inputs = frozenset(names) if isinstance(names, list) else names or False
    return [_clear_result(turn, cleared, clears_inputs) for turn in draft.turns], len(cleared)


def _is_reached(trigger: NumInputTokens | ToolUses, draft: Draft, num_calls: int) -> bool:
    match trigger:
        case NumInputTokens(value=value):
            return draft.num_tokens > value
        case ToolUses(value=value):
            return num_calls > value
        case unreachable:
            assert_never(unreachable)


def _clear_result(
    turn: Turn, cleared: Container[object], clears_inputs: bool | frozenset[str]
) -> Turn:
    """Replaces a tool result, or inputs of calls. `cleared` are the ids of the calls to clear."""
    if turn.role == "tool" and turn.answered["tool_call_id"] in cleared:
        return replace(turn, pieces=[_PLACEHOLDER])
    if clears_inputs is False or not turn.calls:
        return turn
    return replace(turn, calls=[_clear_input(call, cleared, clears_inputs) for call in turn.calls])


def _clear_input(
    call: JsonObject, cleared: Container[object], clears_inputs: bool | frozenset[str]
) -> JsonObject:
    function = call["function"]
    assert isinstance(function, dict)
    is_meant = clears_inputs is True or (
        not isinstance(clears_inputs, bool) and function["name"] in clears_inputs
    )
    if call["id"] not in cleared or not is_meant:
        return call
    return {**call, "function": {**function, "arguments": {}}}
