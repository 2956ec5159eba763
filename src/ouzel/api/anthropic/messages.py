"""POST /messages makes of a body in Anthropic's form a request of the engine and an answer."""

import secrets

from ouzel.api.anthropic.answer import MessageAnswer
from ouzel.api.anthropic.message_object import STREAM_EVENTS, MessageObject
from ouzel.api.anthropic.reading import decode_messages, read_messages
from ouzel.api.anthropic.request import MessagesRequest
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.dialect import Answer
from ouzel.config import LimitsConfig
from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.generation import GenerationRequest, ServedModel, accept
from ouzel.wire.decode import JsonObject, parse_object


class Messages:
    """Implements `Dialect`."""

    parse = staticmethod(parse_object)

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(self, fields: JsonObject, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        body = decode_messages(fields, MessagesRequest, self._model)
        read = read_messages(body, self._model, self._limits)
        edits = read.edit_context(self._model)
        prompt = read.prompt(self._model)
        message_id = f"msg_{secrets.token_hex(12)}"
        try:
            accepted = accept(read.chat.options, prompt, self._model, request_id=message_id, arrival_s=arrival_s)
        except ContextLengthExceeded as error:
            num_tokens, most = len(prompt.token_ids), self._model.engine.info.max_model_len
            excess = f"input length and `max_tokens` exceed context limit: {num_tokens} + {body.max_tokens} > {most}"
            advice = "decrease input length or `max_tokens` and try again"
            raise ContextLengthExceeded(f"{excess}, {advice}", param="max_tokens") from error
        except InvalidRequest as error:
            if error.param != "thinking_token_budget":
                raise
            raise error.at("thinking.budget_tokens") from error
        return [accepted], MessageAnswer(message_id, body, self._model, edits)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/messages",
        prefixes=PREFIXES,
        summary="Answers a chat as Anthropic's Messages API does.",
        endpoint=lambda services: services.generating(Messages(services.model, services.limits)),
        bodies=(MessagesRequest,),
        answers=(MessageObject,),
        chunks=STREAM_EVENTS,
        words="anthropic",
    ),
)
