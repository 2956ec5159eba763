"""POST /chat/completions: from a body to a request of the engine and an answer."""

from ouzel.api.http.dialect import Answer
from ouzel.api.openai.chat_answer import ChatAnswer
from ouzel.api.openai.chat_request import ChatCompletionRequest
from ouzel.api.openai.envelope import Envelope, new_envelope
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationRequest, ServedModel
from ouzel.wire.chat_prompt import chat_rendering
from ouzel.wire.decode import JsonObject, decode_object, log_ignored, parse_object
from ouzel.wire.fields import check_completion, check_num_logprobs, generation_request, max_tokens_of, truncation_of
from ouzel.wire.response_form import output_form
from ouzel.wire.tools import asked_tools


class ChatCompletions:
    """The `Dialect` of chat completions."""

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(self, body: bytes, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        asked, envelope, request = self.read(parse_object(body), arrival_s)
        return [request], ChatAnswer(envelope, self._model, asked, request.prompt)

    def read(
        self, given: JsonObject, arrival_s: float, *, default_max_tokens: int | None = None
    ) -> tuple[ChatCompletionRequest, Envelope, GenerationRequest]:
        """What `given` asks for, whatever words it will be answered in."""
        asked, unknown = decode_object(given, ChatCompletionRequest)
        log_ignored(unknown)
        self._check(asked)
        tools = asked_tools(asked, guides_all=self._model.guides_tools)
        prompt = self._model.renderer.render_chat(
            asked.messages,
            chat_rendering(asked, tools=tools.shown),
            truncation=truncation_of(asked, self._model.engine.info.max_model_len, max_tokens_of(asked)[1]),
        )
        envelope = new_envelope("chatcmpl", self._model)
        request = generation_request(
            asked,
            self._model,
            prompt,
            request_id=envelope.id,
            max_tokens=max_tokens_of(asked),
            form=output_form(asked),
            default_max_tokens=default_max_tokens,
            num_logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
            num_prompt_logprobs=asked.prompt_logprobs,
            shows_prompt=asked.prompt_logprobs is not None,
            continues_prompt=asked.continue_final_message or False,
            parses_output=True,
            tool_use=tools.use,
            arrival_s=arrival_s,
        )
        return asked, envelope, request

    def _check(self, asked: ChatCompletionRequest) -> None:
        check_completion(asked, self._model, self._limits)
        check_num_logprobs(asked.top_logprobs, self._limits, param="top_logprobs")
        if asked.top_logprobs and not asked.logprobs:
            raise InvalidRequest(
                f"top_logprobs needs logprobs to be true, given {asked.top_logprobs}", param="top_logprobs"
            )
