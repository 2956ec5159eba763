"""Reads requests to POST /chat/completions, and begins their answers."""

from collections.abc import Mapping

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.http.dialect import Answer
from ouzel.api.openai.chat_answer import ChatAnswer
from ouzel.api.openai.envelope import new_envelope
from ouzel.api.openai.kept_chat import ChatToStore, keep_chat
from ouzel.config import LimitsConfig
from ouzel.generation import GenerationRequest, ServedModel, accept
from ouzel.responses.hosted.citations import Source
from ouzel.wire.chat import Chat, decode_chat
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.offered_tools import HostedOffer


class ChatCompletions:
    parse = staticmethod(parse_object)

    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        archive: ChatArchive,
        hints: Mapping[str, str] | None = None,
    ) -> None:
        """`hints` tell how the operator turns on tools that this server can run, by their types."""
        self._offer = HostedOffer(hints=hints or {})
        self._model = model
        self._limits = limits
        self._archive = archive

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        request, chat = decode_chat(fields, self._model, self._limits, self._offer)
        answer, accepted = accept_chat(request, chat, self._model, arrival_s)
        chat_to_store = ChatToStore(answer, request, accepted, fields)
        return [accepted], keep_chat(answer, chat_to_store, self._archive)


def accept_chat(
    request: ChatCompletionRequest,
    chat: Chat,
    model: ServedModel,
    arrival_s: float,
    sources: Mapping[int, Source] | None = None,
) -> tuple[ChatAnswer, GenerationRequest]:
    """Renders the prompt of a chat from any API, and begins an answer in OpenAI's form.

    Tools that this server runs may add `sources` meanwhile.
    """
    prompt = model.renderer.render_chat(
        request.messages, chat.rendering, truncation=chat.truncation
    )
    envelope = new_envelope("chatcmpl", model)
    accepted = accept(chat.options, prompt, model, request_id=envelope.id, arrival_s=arrival_s)
    answer = ChatAnswer(
        envelope,
        model,
        request,
        prompt,
        reasoning_place=chat.reasoning_place,
        warnings=accepted.warnings,
        sources=sources,
    )
    return answer, accepted
