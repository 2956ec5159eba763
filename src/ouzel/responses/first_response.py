"""What a response repeats of its request: not the words, but what they came to."""

from ouzel.responses.request import ReasoningOptions, ResponsesRequest, TextOptions, conversation_id_of
from ouzel.responses.response_object import (
    ResponseObject,
    ShownAllowedTools,
    ShownConversation,
    ShownFunctionChoice,
    ShownReasoning,
    ShownText,
    ShownTool,
    ShownToolChoice,
)
from ouzel.responses.text_format import shown_format
from ouzel.sampling import SamplingParams
from ouzel.wire.tools import AllowedTools, NamedTool, Tool, ToolChoice


def new_response(
    asked: ResponsesRequest,
    params: SamplingParams,
    *,
    response_id: str,
    created_at: int,
    max_tokens: int | None,
    model_name: str,
    is_kept: bool,
) -> ResponseObject:
    """In progress, without output. `max_tokens`: the limit that was asked for."""
    conversation_id = conversation_id_of(asked)
    text, reasoning = asked.text or TextOptions(), asked.reasoning or ReasoningOptions()
    return ResponseObject(
        id=response_id,
        created_at=created_at,
        background=asked.background or False,
        conversation=None if conversation_id is None else ShownConversation(conversation_id),
        previous_response_id=asked.previous_response_id,
        store=is_kept,
        model=model_name,
        instructions=asked.instructions,
        max_output_tokens=max_tokens,
        max_tool_calls=asked.max_tool_calls,
        metadata=asked.metadata or {},
        parallel_tool_calls=asked.parallel_tool_calls is not False,
        prompt_cache_key=asked.prompt_cache_key,
        reasoning=ShownReasoning(reasoning.effort or asked.reasoning_effort, reasoning.summary),
        safety_identifier=asked.safety_identifier,
        temperature=params.temperature,
        text=ShownText(shown_format(text.format, asked.response_format), text.verbosity or "medium"),
        tool_choice=_shown_choice(asked.tool_choice),
        tools=[_shown_tool(tool) for tool in asked.tools or []],
        top_logprobs=asked.top_logprobs or 0,
        top_p=params.top_p,
        truncation=asked.truncation or "disabled",
        user=asked.user,
    )


def _shown_tool(tool: Tool) -> ShownTool:
    function = tool.function
    if function is not None:
        return ShownTool(function.name, function.description, function.parameters, function.strict or False)
    assert tool.name is not None
    return ShownTool(tool.name, tool.description, tool.parameters, tool.strict or False)


def _shown_choice(choice: ToolChoice) -> ShownToolChoice:
    match choice:
        case None:
            return "auto"
        case NamedTool():
            return _shown_name(choice)
        case AllowedTools(allowed, mode, tools):
            if allowed is not None:
                mode, tools = allowed.mode, allowed.tools
            assert mode is not None and tools is not None
            return ShownAllowedTools(mode, [_shown_name(tool) for tool in tools])
        case _:
            return choice


def _shown_name(tool: NamedTool) -> ShownFunctionChoice:
    name = tool.name if tool.function is None else tool.function.name
    assert name is not None
    return ShownFunctionChoice(name)
