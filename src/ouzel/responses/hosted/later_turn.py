"""Chooses the options of the turns that follow calls of hosted tools, for every API."""

from collections.abc import Collection

from msgspec.structs import replace

from ouzel.generation import GenerationOptions
from ouzel.wire.offered_tools import ClientName, ToolNames
from ouzel.wire.tools import AllowedTools, Choice


def limit_later_turn(
    options: GenerationOptions,
    names: ToolNames,
    hosted_names: Collection[ClientName],
    *,
    num_used_tokens: int,
    may_call: bool,
) -> GenerationOptions | None:
    """Returns the options of a later turn; None if no tokens are left for it.

    `num_used_tokens` is the number of tokens that earlier turns have generated. Without `may_call`
    the model cannot call the hosted tools, which have `hosted_names`; `names` translates them.
    """
    if options.max_tokens is not None:
        if options.max_tokens <= num_used_tokens:
            return None
        options = replace(options, max_tokens=options.max_tokens - num_used_tokens)
    use = options.tool_use
    if may_call or use is None:
        return options
    tools = [tool for tool in use.tools if names.for_client(tool.name) not in hosted_names]
    return replace(options, tool_use=replace(use, tools=tuple(tools), are_all=False))


def relax_choice(choice: Choice | None) -> Choice | None:
    """Returns the choice of the turns after the first, in which no call is demanded.

    Otherwise the model could never answer.
    """
    match choice:
        case None | "none" | "auto":
            return choice
        case AllowedTools():
            inner = choice.allowed_tools
            if inner is None:
                return replace(choice, mode="auto")
            return replace(choice, allowed_tools=replace(inner, mode="auto"))
        case _:
            return None
