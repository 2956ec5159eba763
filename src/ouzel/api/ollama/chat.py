"""Answers a chat: POST /api/chat.

Without messages it answers as if the model was loaded or unloaded.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ouzel.api.endpoint.on_demand import OnDemand
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.dialect import Answer
from ouzel.api.ollama.answer import LoadAnswer, OllamaAnswer, OllamaLine, Piece
from ouzel.api.ollama.body import OllamaBody, read_body
from ouzel.api.ollama.keep_alive import apply_keep_alive, asks_to_unload
from ouzel.api.ollama.messages import read_messages
from ouzel.api.ollama.model_name import choose_by_tagged_name
from ouzel.api.ollama.reading import accept_prompt, name_ollamas_fields, read_ollama_chat
from ouzel.api.ollama.tool_calls import OllamaToolCall
from ouzel.config import LimitsConfig
from ouzel.generation import ChatRendering, GenerationRequest, Prompt, ServedModel
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.newest_turns import render_newest
from ouzel.wire.tools import MAX_TOOLS, FunctionDefinition, Tool, ToolChoice

_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "minLength": 1},
        "content": {"type": ["string", "null"]},
        "thinking": {"type": ["string", "null"]},
        "tool_name": {"type": ["string", "null"]},
        "tool_call_id": {"type": ["string", "null"]},
        "images": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "For models that accept images.",
        },
        "tool_calls": {
            "type": ["array", "null"],
            "items": {"type": "object", "required": ["function"]},
        },
    },
}


class OllamaTool(msgspec.Struct, frozen=True):
    function: Annotated[FunctionDefinition, Meta(description="The function to call.")]
    type: str | None = None


class OllamaChatRequest(OllamaBody, kw_only=True):
    messages: Annotated[
        list[Annotated[object, Meta(extra_json_schema=_MESSAGE)]] | None,
        Meta(description="The chat; a last message of the assistant is continued."),
    ] = None
    tools: (
        Annotated[
            list[OllamaTool],
            Meta(max_length=MAX_TOOLS, description="Functions that the model may call."),
        ]
        | None
    ) = None
    tool_choice: ToolChoice = None


class OllamaMessage(msgspec.Struct):
    role: str
    content: str
    thinking: str | UnsetType = UNSET
    tool_calls: list[OllamaToolCall] | UnsetType = UNSET


class OllamaChat(OllamaLine, kw_only=True):
    message: OllamaMessage


class Chats:
    """Reads chats and begins their answers."""

    parse = staticmethod(parse_object)

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        body = read_body(fields, OllamaChatRequest, self._model)
        name = body.model or self._model.names[0]
        if not body.messages:
            return [], LoadAnswer(_line, name=name, unloads=body.unloads)
        with name_ollamas_fields():
            messages = read_messages(
                body.messages, supports_images=self._model.renderer.supports_images
            )
            request = self._accepted(body, messages, arrival_s)
        is_stream = body.stream is not False
        return [request], OllamaAnswer(
            _line, self._model, name=name, is_stream=is_stream, arrival_s=arrival_s
        )

    def _accepted(
        self, body: OllamaChatRequest, messages: list[object], arrival_s: float
    ) -> GenerationRequest:
        tools = [Tool("function", tool.function) for tool in body.tools or []]
        chat = read_ollama_chat(
            body,
            self._model,
            self._limits,
            tools=tools or None,
            tool_choice=body.tool_choice,
            continues=_is_begun(messages[-1]),
        )
        render = partial(self._render, rendering=chat.rendering)
        if body.truncate is False:
            prompt = render(messages)
        else:
            prompt = render_newest(
                messages,
                render,
                role_of=_role,
                max_model_len=self._model.engine.info.max_model_len,
                max_tokens=chat.options.max_tokens,
            )
        return accept_prompt(chat.options, prompt, self._model, arrival_s)

    def _render(self, messages: Sequence[object], *, rendering: ChatRendering) -> Prompt:
        return self._model.renderer.render_chat(list(messages), rendering)


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, dict) else None


def _is_begun(message: object) -> bool:
    """Tells whether the message is the beginning of an answer."""
    match message:
        case {"role": "assistant", "content": content, **others}:
            return bool(content) and not others.get("tool_calls")
        case _:
            return False


def _line(piece: Piece, *, model: str, created_at: str) -> OllamaChat:
    message = OllamaMessage(
        "assistant", piece.content, piece.thinking or UNSET, piece.calls or UNSET
    )
    return OllamaChat(model=model, created_at=created_at, message=message)


def _answer_away(_: OnDemand, name: str, body: bytes) -> OllamaChat | None:
    """Answers a request to unload a model that is not in memory."""
    return LoadAnswer(_line, name=name, unloads=True).line if asks_to_unload(body) else None


OPERATIONS = (
    Operation(
        method="post",
        path="/api/chat",
        summary="Ollama: answers a chat.",
        endpoint=lambda services: services.make_generating(Chats(services.model, services.limits)),
        choice=choose_by_tagged_name,
        bodies=(OllamaChatRequest,),
        answers=(OllamaChat,),
        chunks=(OllamaChat,),
        words="ollama",
        answer_away=_answer_away,
        apply_keep_alive=apply_keep_alive,
    ),
)
