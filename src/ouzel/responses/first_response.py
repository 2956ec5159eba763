"""Builds the first state of a response object, with the effective values of the request."""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ouzel.responses.hosted.kinds import HostedKinds, JsonObject
from ouzel.responses.item_fields import Message
from ouzel.responses.items.listed_tools import shown_tool
from ouzel.responses.request import (
    ReasoningOptions,
    ResponsesRequest,
    TextOptions,
    find_conversation_id,
)
from ouzel.responses.response_object import (
    ResponseObject,
    ShownAllowedTools,
    ShownConversation,
    ShownCustomChoice,
    ShownFunctionChoice,
    ShownNamedTool,
    ShownReasoning,
    ShownText,
    ShownToolChoice,
)
from ouzel.responses.stored_items import show_part
from ouzel.responses.templates.filling import FilledTemplate
from ouzel.responses.text_format import shown_format
from ouzel.sampling import SamplingParams
from ouzel.wire.tool_use import named_tool
from ouzel.wire.tools import (
    AllowedTools,
    AnyNamedTool,
    NamedCustomTool,
    NamedHostedTool,
    NamedTool,
    ToolChoice,
)


def new_response(
    fields: ResponsesRequest,
    params: SamplingParams,
    *,
    response_id: str,
    created_at: int,
    max_tokens: int | None,
    model_name: str,
    is_stored: bool,
    prompt_token_ids: list[int],
    warnings: tuple[str, ...],
    completed_at: UnsetType | None,
    hosted: HostedKinds,
) -> ResponseObject:
    """Returns a response in progress, without output.

    `max_tokens` is the token limit that the request names, None if it names none. `hosted` are the
    kinds of tools that this server runs.
    """
    conversation_id = find_conversation_id(fields)
    text, reasoning = fields.text or TextOptions(), fields.reasoning or ReasoningOptions()
    return ResponseObject(
        id=response_id,
        created_at=created_at,
        completed_at=completed_at,
        background=fields.background or False,
        conversation=None if conversation_id is None else ShownConversation(conversation_id),
        previous_response_id=fields.previous_response_id,
        store=is_stored,
        model=model_name,
        instructions=fields.instructions,
        max_output_tokens=max_tokens,
        max_tool_calls=fields.max_tool_calls,
        metadata=fields.metadata or {},
        parallel_tool_calls=fields.parallel_tool_calls is not False,
        prompt_cache_key=fields.prompt_cache_key,
        reasoning=ShownReasoning(
            reasoning.effort or fields.reasoning_effort,
            reasoning.summary or reasoning.generate_summary,
        ),
        safety_identifier=fields.safety_identifier,
        frequency_penalty=params.frequency_penalty,
        presence_penalty=params.presence_penalty,
        temperature=params.temperature,
        text=ShownText(
            shown_format(text.format, fields.response_format), text.verbosity or "medium"
        ),
        tool_choice=_shown_choice(fields.tool_choice),
        tools=[_shown_tool(tool, hosted) for tool in fields.tools or []],
        top_logprobs=fields.top_logprobs or 0,
        top_p=params.top_p,
        truncation=fields.truncation or "disabled",
        user=fields.user,
        prompt_token_ids=prompt_token_ids if fields.return_token_ids else UNSET,
        warnings=warnings or UNSET,
    )


def show_template(response: ResponseObject, template: FilledTemplate) -> ResponseObject:
    """Returns the response with the reference to its template, and with the filled template.

    The instructions are a list of messages if the template has any, as at OpenAI.
    """
    shown = [_shown_message(message) for message in template.messages]
    if shown and response.instructions is not None:
        part = {"type": "input_text", "text": response.instructions}
        shown.insert(0, {"type": "message", "role": "system", "content": [part]})
    variables = {
        name: show_part(value) if isinstance(value, dict) else value
        for name, value in (template.reference.variables or {}).items()
    }
    return replace(
        response,
        prompt=replace(template.reference, variables=variables),
        instructions=shown or response.instructions,
    )


def _shown_message(message: Message) -> Message:
    content = message["content"]
    if isinstance(content, list):
        content = [show_part(part) for part in content]
    return {**message, "content": content}


def _shown_choice(choice: ToolChoice) -> ShownToolChoice:
    match choice:
        case None:
            return "auto"
        case NamedTool() | NamedCustomTool() | NamedHostedTool():
            return _shown_name(choice)
        case AllowedTools(listed_tools, mode, tools):
            if listed_tools is not None:
                mode, tools = listed_tools.mode, listed_tools.tools
            assert mode is not None and tools is not None
            return ShownAllowedTools(mode, [_shown_name(tool) for tool in tools])
        case _:
            return choice


def _shown_tool(tool: JsonObject, hosted: HostedKinds) -> JsonObject:
    is_hosted = hosted.find(tool.get("type")) is not None
    return hosted.show(tool) if is_hosted else shown_tool(tool)


def _shown_name(tool: AnyNamedTool) -> ShownNamedTool:
    if isinstance(tool, NamedHostedTool):
        return tool
    name = named_tool(tool)
    assert name is not None
    kind = ShownCustomChoice if isinstance(tool, NamedCustomTool) else ShownFunctionChoice
    return kind(name.name, UNSET if name.namespace is None else name.namespace)
