"""Defines `context_management`: edits that remove old blocks from the prompt, and their report."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ThinkingTurns(msgspec.Struct, frozen=True, tag="thinking_turns"):
    value: Annotated[
        int, Meta(ge=1, description="The number of newest turns that keep their thinking.")
    ]


class AllThinking(msgspec.Struct, frozen=True, tag="all"):
    pass


class ClearThinking(msgspec.Struct, frozen=True, tag="clear_thinking_20251015"):
    keep: Annotated[
        Literal["all"] | ThinkingTurns | AllThinking | None,
        Meta(description="Turns that keep their thinking; default: only the newest turn."),
    ] = None


class NumInputTokens(msgspec.Struct, frozen=True, tag="input_tokens"):
    value: Annotated[int, Meta(ge=0, description="A number of tokens of the prompt.")]


class ToolUses(msgspec.Struct, frozen=True, tag="tool_uses"):
    value: Annotated[int, Meta(ge=0, description="A number of tool calls in the messages.")]


class ClearToolUses(msgspec.Struct, frozen=True, tag="clear_tool_uses_20250919"):
    trigger: Annotated[
        NumInputTokens | ToolUses | None,
        Meta(
            description="The edit applies if the prompt has more than this; default: 100000 tokens."
        ),
    ] = None
    keep: Annotated[
        ToolUses | None,
        Meta(description="The number of newest tool calls that keep their results; default: 3."),
    ] = None
    clear_at_least: Annotated[
        NumInputTokens | None,
        Meta(description="The edit applies only if it clears this number of tokens."),
    ] = None
    exclude_tools: Annotated[
        list[str] | None, Meta(description="Names of tools that keep all results.")
    ] = None
    clear_tool_inputs: Annotated[
        bool | list[str] | None,
        Meta(
            description="Clears the inputs of these calls too: true for all tools, or names of "
            "tools."
        ),
    ] = None


Edit = ClearThinking | ClearToolUses

# Each edit renders and tokenizes the whole chat.
_MAX_EDITS = 16


class ContextManagement(msgspec.Struct, frozen=True):
    edits: (
        Annotated[
            list[Edit],
            Meta(
                max_length=_MAX_EDITS,
                description="Blocks to remove from the prompt, edit by edit; no summaries.",
            ),
        ]
        | None
    ) = None


class ClearedThinking(msgspec.Struct, frozen=True, tag="clear_thinking_20251015"):
    cleared_thinking_turns: int
    cleared_input_tokens: int


class ClearedToolUses(msgspec.Struct, frozen=True, tag="clear_tool_uses_20250919"):
    cleared_tool_uses: int
    cleared_input_tokens: int


class AppliedEdits(msgspec.Struct, frozen=True):
    applied_edits: list[ClearedThinking | ClearedToolUses]


class CountedContext(msgspec.Struct, frozen=True):
    original_input_tokens: int  # tokens of the prompt before the edits
