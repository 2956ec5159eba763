"""Answers a prompt, continues a text, or fills in the middle of a text: POST /api/generate.

Without a prompt it answers as if the model was loaded or unloaded.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ouzel.api.endpoint.on_demand import OnDemand
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.dialect import Answer
from ouzel.api.ollama.answer import LoadAnswer, OllamaAnswer, OllamaLine, Piece
from ouzel.api.ollama.body import OllamaBody, read_body
from ouzel.api.ollama.keep_alive import apply_keep_alive, asks_to_unload
from ouzel.api.ollama.messages import add_images, read_images
from ouzel.api.ollama.model_name import choose_by_tagged_name
from ouzel.api.ollama.reading import accept_prompt, name_ollamas_fields, read_ollama_chat
from ouzel.config import LimitsConfig
from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.generation import (
    Event,
    GenerationOptions,
    GenerationRequest,
    MediaPart,
    Prompt,
    ServedModel,
    Usage,
)
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.validation_errors import show_value

_FOR_CHATS = ("system", "context", "think", "images")  # fields that need the model's chat template


class OllamaGenerateRequest(OllamaBody, kw_only=True):
    prompt: Annotated[
        str | None, Meta(description="The user's message; with raw, the text to continue.")
    ] = None
    suffix: Annotated[
        str | None,
        Meta(
            description="The text after the answer: fills in the middle, for models with special "
            "tokens for it."
        ),
    ] = None
    system: Annotated[str | None, Meta(description="A system message before the prompt.")] = None
    template: Annotated[
        str | None,
        Meta(description="Only empty: the server uses the model's template, or none with raw."),
    ] = None
    raw: Annotated[bool | None, Meta(description="Uses the prompt without the chat template.")] = (
        None
    )
    images: Annotated[
        list[str] | None,
        Meta(
            description="Image files in base64, before the prompt; for models that accept images."
        ),
    ] = None
    context: Annotated[
        list[Annotated[int, Meta(ge=0)]] | None,
        Meta(description="Token ids before the prompt: the context of an earlier answer."),
    ] = None


class OllamaGenerated(OllamaLine, kw_only=True):
    response: str
    thinking: str | UnsetType = UNSET
    context: list[int] | UnsetType = UNSET  # set in the last line


class Generating:
    """Reads prompts and begins their answers."""

    parse = staticmethod(parse_object)

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        body = read_body(fields, OllamaGenerateRequest, self._model)
        name = body.model or self._model.names[0]
        pictures = read_images(
            body.images, "images", supports_images=self._model.renderer.supports_images
        )
        if not body.prompt and not body.suffix and not pictures:
            return [], LoadAnswer(_line, name=name, unloads=body.unloads)
        is_text = bool(body.raw or body.suffix) or self._model.renderer.chat_template is None
        _check(body, is_text=is_text)
        with name_ollamas_fields():
            request = self._accepted(body, pictures, arrival_s, is_text=is_text)
        is_stream = body.stream is not False
        answer = OllamaAnswer(
            _line, self._model, name=name, is_stream=is_stream, arrival_s=arrival_s
        )
        return [request], answer if is_text else GeneratedAnswer(answer, request.prompt)

    def _accepted(
        self,
        body: OllamaGenerateRequest,
        pictures: Sequence[MediaPart],
        arrival_s: float,
        *,
        is_text: bool,
    ) -> GenerationRequest:
        chat = read_ollama_chat(body, self._model, self._limits)
        if is_text:
            options = _make_text_options(chat.options)
            return accept_prompt(options, self._text_prompt(body), self._model, arrival_s)
        try:
            prompt = self._model.renderer.render_chat(_messages(body, pictures), chat.rendering)
        except ContextLengthExceeded as error:
            raise error.at("prompt") from error
        if body.context:
            prompt = self._after(body.context, prompt)
        return accept_prompt(chat.options, prompt, self._model, arrival_s)

    def _text_prompt(self, body: OllamaGenerateRequest) -> Prompt:
        renderer = self._model.renderer
        if body.suffix:
            return renderer.render_infill(body.prompt or "", body.suffix)
        return renderer.render_text(body.prompt or "")

    def _after(self, context: list[int], prompt: Prompt) -> Prompt:
        token_ids = [*context, *prompt.token_ids]
        whole = self._model.renderer.render_token_ids(token_ids, param="context")
        return replace(whole, text_to_parse=prompt.text_to_parse)


class GeneratedAnswer:
    """Adds the context to the last line, for the next request to continue.

    A prompt with images has no context, because token ids cannot hold images.
    """

    def __init__(self, answer: OllamaAnswer[OllamaGenerated], prompt: Prompt) -> None:
        self.is_stream = answer.is_stream
        self.framing = answer.framing
        self._answer = answer
        self._prompt = prompt

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[OllamaGenerated]:
        return self._answer.chunks(events, usage)

    def last_chunks(self, usage: Usage) -> list[OllamaGenerated]:
        return [self._with_context(line) for line in self._answer.last_chunks(usage)]

    def whole(self, events: Sequence[Event], usage: Usage) -> OllamaGenerated:
        return self._with_context(self._answer.whole(events, usage))

    def _with_context(self, line: OllamaGenerated) -> OllamaGenerated:
        if not self._prompt.images:
            line.context = [*self._prompt.token_ids, *self._answer.token_ids]
        return line


def _check(body: OllamaGenerateRequest, *, is_text: bool) -> None:
    """Raises InvalidRequest for an unsupported field, or for fields that exclude each other.

    `is_text` tells whether the prompt is rendered without a chat template. Such a prompt takes no
    fields of chats.
    """
    if body.template:
        limit = (
            "must be empty: this server renders prompts with the model's own template, "
            "or none with raw"
        )
        raise InvalidRequest(f"{limit}, given {show_value(body.template)}", field="template")
    for name in _FOR_CHATS if is_text else ():
        if value := getattr(body, name):
            instead = "with raw, with a suffix, or for a model without a chat template"
            raise InvalidRequest(
                f"must not be given {instead}, given {show_value(value)}", field=name
            )
    if body.images and body.context:
        limit = "must not be given beside images: use /api/chat for earlier messages"
        raise InvalidRequest(f"{limit}, given {show_value(body.context)}", field="context")


def _make_text_options(options: GenerationOptions) -> GenerationOptions:
    """Returns the options for an output that continues its prompt, and is text only."""
    return msgspec.structs.replace(options, continues_prompt=True, parses_output=False)


def _messages(
    body: OllamaGenerateRequest, pictures: Sequence[MediaPart]
) -> list[dict[str, object]]:
    system: list[dict[str, object]] = (
        [{"role": "system", "content": body.system}] if body.system else []
    )
    return [*system, {"role": "user", "content": add_images(pictures, body.prompt or "")}]


def _line(piece: Piece, *, model: str, created_at: str) -> OllamaGenerated:
    thinking = piece.thinking or UNSET
    return OllamaGenerated(
        model=model, created_at=created_at, response=piece.content, thinking=thinking
    )


def _answer_away(_: OnDemand, name: str, body: bytes) -> OllamaGenerated | None:
    """Answers a request to unload a model that is not in memory."""
    return LoadAnswer(_line, name=name, unloads=True).line if asks_to_unload(body) else None


OPERATIONS = (
    Operation(
        method="post",
        path="/api/generate",
        summary="Ollama: answers a prompt, continues it, or fills in before a suffix.",
        endpoint=lambda services: services.make_generating(
            Generating(services.model, services.limits)
        ),
        choice=choose_by_tagged_name,
        bodies=(OllamaGenerateRequest,),
        answers=(OllamaGenerated,),
        chunks=(OllamaGenerated,),
        words="ollama",
        answer_away=_answer_away,
        apply_keep_alive=apply_keep_alive,
    ),
)
