"""POST /chat/completions: from a body to a request of the engine and an answer."""

from msgspec.structs import replace

from ouzel.api.http.dialect import Answer
from ouzel.api.openai.chat_answer import ChatAnswer, ChatCompletion, ChatCompletionChunk
from ouzel.api.openai.chat_request import ChatCompletionRequest
from ouzel.api.openai.envelope import Envelope, new_envelope
from ouzel.api.operation import PREFIXES, Operation
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationOptions, GenerationRequest, ServedModel, accept
from ouzel.wire.chat_prompt import chat_rendering
from ouzel.wire.decode import decode_body
from ouzel.wire.options import check_completion, check_num_logprobs, options_of, truncation_of
from ouzel.wire.tools import tools_of


class ChatCompletions:
    """The `Dialect` of chat completions."""

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(self, body: bytes, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        chat = decode_body(body, ChatCompletionRequest)
        envelope, request = self.read(chat, arrival_s)
        return [request], ChatAnswer(envelope, self._model, chat, request.prompt)

    def read(
        self, body: ChatCompletionRequest, arrival_s: float, *, default_max_tokens: int | None = None
    ) -> tuple[Envelope, GenerationRequest]:
        """Accepts what `body` asks for, whatever words it will be answered in."""
        options = replace(self._options(body), default_max_tokens=default_max_tokens)
        tools = tools_of(body, guides_all=self._model.guides_tools)
        prompt = self._model.renderer.render_chat(
            body.messages,
            chat_rendering(body, tools=tools.shown),
            truncation=truncation_of(body, self._model, options.max_tokens),
        )
        envelope = new_envelope("chatcmpl", self._model)
        options = replace(options, tool_use=tools.use)
        return envelope, accept(options, prompt, self._model, request_id=envelope.id, arrival_s=arrival_s)

    def _options(self, body: ChatCompletionRequest) -> GenerationOptions:
        options = options_of(body, self._model, self._limits)
        check_completion(body, self._limits)
        check_num_logprobs(body.top_logprobs, self._limits, param="top_logprobs")
        if body.top_logprobs and not body.logprobs:
            raise InvalidRequest(
                f"top_logprobs needs logprobs to be true, given {body.top_logprobs}", param="top_logprobs"
            )
        return replace(
            options,
            num_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
            num_prompt_logprobs=body.prompt_logprobs,
            may_be_empty=body.prompt_logprobs is not None,
            continues_prompt=body.continue_final_message or False,
            parses_output=True,
        )


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/chat/completions",
        prefixes=PREFIXES,
        summary="Answers a chat. With LMI's profile in LMI's words.",
        endpoint=lambda services: services.generating(ChatCompletions(services.model, services.limits)),
        bodies=(ChatCompletionRequest,),
        answers=(ChatCompletion,),
        chunks=(ChatCompletionChunk,),
    ),
)
