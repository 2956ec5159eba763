"""Reads the parts that Ollama's two generating endpoints share."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec

from ouzel.api.ollama.body import OllamaBody, name_ollamas_field
from ouzel.api.ollama.options import ModelOptions, read_sampling
from ouzel.api.openai.models import list_capabilities
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationOptions, GenerationRequest, Prompt, ServedModel, accept
from ouzel.wire.chat import Chat, read_chat
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import log_ignored
from ouzel.wire.tools import Choice, Tool

_SWITCHES = {"enable_thinking", "thinking"}


def read_ollama_chat(
    body: OllamaBody,
    model: ServedModel,
    limits: LimitsConfig,
    *,
    tools: list[Tool] | None = None,
    tool_choice: Choice | None = None,
    continues: bool = False,
) -> Chat:
    """Reads a body, except for the messages.

    With `continues` the answer continues the last message.
    """
    options = body.options or ModelOptions()
    ours = msgspec.convert(
        {
            **read_sampling(options, model),
            **_read_thinking(body, model),
            "model": model.names[0],
            "messages": [],
            "stop": options.stop,
            "logprobs": body.logprobs,
            "top_logprobs": body.top_logprobs,
            "continue_final_message": continues or None,
        },
        ChatCompletionRequest,
    )
    ours.tools, ours.tool_choice = tools, tool_choice
    chat = read_chat(ours, model, limits)
    limit = options.num_predict
    own = msgspec.structs.replace(
        chat.options,
        form=body.form,
        max_tokens=limit if limit is not None and limit > 0 else None,
        max_tokens_param="options.num_predict",
        takes_all_left=limit is not None and limit <= 0,
        is_strict=False,
    )
    return replace(chat, options=own)


def accept_prompt(
    options: GenerationOptions, prompt: Prompt, model: ServedModel, arrival_s: float
) -> GenerationRequest:
    return accept(
        options, prompt, model, request_id=f"ollama-{secrets.token_hex(16)}", arrival_s=arrival_s
    )


@contextmanager
def name_ollamas_fields() -> Iterator[None]:
    """Names Ollama's fields in errors of the block."""
    try:
        yield
    except InvalidRequest as error:
        raise name_ollamas_field(error) from error


def _read_thinking(body: OllamaBody, model: ServedModel) -> dict[str, object]:
    """Returns our fields for `think`. Raises InvalidRequest if the model cannot reason."""
    if body.think is None:
        return {}
    template = model.renderer.chat_template
    has_switch = template is not None and bool(_SWITCHES & template.variables_read())
    if body.think is False:
        if not has_switch:
            log_ignored({"think"})  # some clients always send it
        return {"enable_thinking": False} if has_switch else {}
    if "reasoning" not in list_capabilities(model):
        raise InvalidRequest(
            f'"{body.model or model.names[0]}" does not support thinking', param="think"
        )
    if body.think is not True:
        return {"reasoning_effort": body.think}
    return {"enable_thinking": True} if has_switch else {}
