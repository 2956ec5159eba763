"""The field `context_management`: edits that leave old blocks out of the prompt, and the account of them in answers."""

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
        Meta(
            description="Turns whose thinking stays in the prompt; the newest turn when not given."
        ),
    ] = None


class InputTokens(msgspec.Struct, frozen=True, tag="input_tokens"):
    value: Annotated[int, Meta(ge=0, description="A number of tokens of the prompt.")]


class ToolUses(msgspec.Struct, frozen=True, tag="tool_uses"):
    value: Annotated[int, Meta(ge=0, description="A number of tool calls in the messages.")]


class ClearToolUses(msgspec.Struct, frozen=True, tag="clear_tool_uses_20250919"):
    trigger: Annotated[
        InputTokens | ToolUses | None,
        Meta(
            description="The edit applies where the prompt has more than this; 100000 tokens when not given."
        ),
    ] = None
    keep: Annotated[
        ToolUses | None,
        Meta(
            description="The number of newest tool calls that keep their results; 3 when not given."
        ),
    ] = None
    clear_at_least: Annotated[
        InputTokens | None,
        Meta(description="The edit applies only where it clears this many tokens."),
    ] = None
    exclude_tools: Annotated[
        list[str] | None, Meta(description="Names of tools whose results always stay.")
    ] = None
    clear_tool_inputs: Annotated[
        bool | list[str] | None,
        Meta(description="The inputs of cleared calls go too: of all tools, or of these."),
    ] = None


Edit = ClearThinking | ClearToolUses

_MAX_EDITS = 16  # an edit renders and tokenizes the whole chat


class ContextManagement(msgspec.Struct, frozen=True):
    edits: (
        Annotated[
            list[Edit],
            Meta(
                max_length=_MAX_EDITS,
                description="Blocks that the prompt leaves out, edit by edit; nothing is summarised.",
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
    original_input_tokens: int  # before the edits
