"""Describes the three endpoints: how bodies are built and how chunks of streams are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # JSON

import msgspec

from ouzel.bench.chunks import Piece, read_chat_chunk, read_completion_chunk, read_response_event
from ouzel.bench.conversation import JsonObject


@dataclass(frozen=True, slots=True)
class Form:
    """Selects the optional fields of requests, because servers refuse different fields."""

    ignores_eos: bool = True  # send ignore_eos, so that each answer has its full length
    includes_usage: bool = True  # send stream_options.include_usage
    max_completion_tokens: bool = False  # send the newer name of `max_tokens` in chats

    def without_refused(self) -> "Form | None":
        """Returns the form to try after a refusal of this form; None after the last form."""
        forms = [
            Form(),
            Form(includes_usage=False),
            Form(ignores_eos=False),
            Form(ignores_eos=False, includes_usage=False),
            Form(ignores_eos=False, max_completion_tokens=True),
        ]
        following = forms[forms.index(self) + 1 :] if self in forms else []
        return following[0] if following else None


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    path: str
    backend: str  # the name in `vllm bench serve`
    read: Callable[[bytes], Piece]
    fields: Callable[[Sequence[JsonObject], int, Sequence[JsonObject], Form], dict[str, Any]]

    def body(
        self,
        messages: Sequence[JsonObject],
        *,
        model: str,
        max_tokens: int,
        tools: Sequence[JsonObject],
        form: Form,
        extra: Mapping[str, Any],
    ) -> bytes:
        """Builds the body of a request.

        Fields of `extra` replace the fields of the benchmark; a null removes a field.
        """
        own = {
            "model": model,
            "stream": True,
            "temperature": 0,
            **self.fields(messages, max_tokens, tools, form),
        }
        if form.ignores_eos and not tools:  # an answer with a tool call ends with the call
            own["ignore_eos"] = True
        fields = {name: value for name, value in {**own, **extra}.items() if value is not None}
        return msgspec.json.encode(fields)


def _chat_fields(
    messages: Sequence[JsonObject], max_tokens: int, tools: Sequence[JsonObject], form: Form
) -> dict[str, Any]:
    fields: dict[str, Any] = {"messages": messages}
    fields["max_completion_tokens" if form.max_completion_tokens else "max_tokens"] = max_tokens
    if tools:
        fields["tools"] = [{"type": "function", "function": tool} for tool in tools]
        fields["tool_choice"] = "required"
    return fields | _usage_fields(form)


def _completion_fields(
    messages: Sequence[JsonObject], max_tokens: int, _: Sequence[JsonObject], form: Form
) -> dict[str, Any]:
    prompt = "".join(message["content"] for message in messages)
    return {"prompt": prompt, "max_tokens": max_tokens} | _usage_fields(form)


def _response_fields(
    messages: Sequence[JsonObject], max_tokens: int, tools: Sequence[JsonObject], _: Form
) -> dict[str, Any]:
    fields: dict[str, Any] = {"input": messages, "max_output_tokens": max_tokens, "store": False}
    if tools:
        fields["tools"] = [{"type": "function", "strict": False, **tool} for tool in tools]
        fields["tool_choice"] = "required"
    return fields


def _usage_fields(form: Form) -> dict[str, Any]:
    return {"stream_options": {"include_usage": True}} if form.includes_usage else {}


CHAT = Endpoint("chat", "/v1/chat/completions", "openai-chat", read_chat_chunk, _chat_fields)
COMPLETIONS = Endpoint(
    "completions", "/v1/completions", "openai", read_completion_chunk, _completion_fields
)
RESPONSES = Endpoint(
    "responses", "/v1/responses", "openai-responses", read_response_event, _response_fields
)
ENDPOINTS = {endpoint.name: endpoint for endpoint in (CHAT, COMPLETIONS, RESPONSES)}
