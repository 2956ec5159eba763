"""Shows the engine's input without generating: POST /chat/completions/render, /completions/render.

The answers are vLLM's, with the prompt's text beside its ids: one object for a chat, one for each
prompt of a completion. The body is checked as for generation.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.dialect import Dialect
from ouzel.api.http.exchange import get_exchange
from ouzel.api.openai.chat import ChatCompletions
from ouzel.api.openai.completions import CompletionRequest, Completions
from ouzel.generation import GenerationRequest
from ouzel.wire.chat_prompt import has_own_template
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject
from ouzel.worker_threads import LONG_BODY_BYTES

Result = TypeVar("Result")


class RenderedSampling(msgspec.Struct, kw_only=True):
    """The sampling parameters with every default filled in."""

    n: int
    max_tokens: int
    min_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    seed: int
    stop: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    ignore_eos: bool
    logprobs: int | None
    prompt_logprobs: int | None
    skip_special_tokens: bool
    include_stop_str_in_output: bool


class RenderedPrompt(msgspec.Struct, kw_only=True):
    request_id: str
    model: str
    prompt: str
    token_ids: list[int]
    sampling_params: RenderedSampling
    stream: bool
    priority: int
    cache_salt: str | None
    features: None = None  # vLLM's field for images, always null


class Rendering:
    """Renders the bodies of a dialect. Long bodies use the threads for tokenization.

    So rendering does not delay requests that generate.
    """

    def __init__(self, services: Services, dialect: Dialect, *, is_chat: bool) -> None:
        self._model_name = services.model.names[0]
        self._threads = services.tokenizing
        self._preparing = services.threads
        self._dialect = dialect
        self._is_chat = is_chat

    async def render(self, request: Request, body: bytes) -> msgspec.Raw:
        is_short = len(body) <= LONG_BODY_BYTES
        fields = await self._run(partial(self._dialect.parse, body), is_short=is_short)
        work = partial(self._render, fields, get_exchange(request.scope).arrival_s)
        if has_own_template(fields):
            return await self._preparing.run(work, len(body), has_own_template=True)
        return await self._run(work, is_short=is_short)

    async def _run(self, work: Callable[[], Result], *, is_short: bool) -> Result:
        return await self._threads.run(work, is_short=is_short)

    def _render(self, fields: JsonObject, arrival_s: float) -> msgspec.Raw:
        requests, answer = self._dialect.prepare(fields, arrival_s)
        rendered = [self._prompt(request, is_stream=answer.is_stream) for request in requests]
        return msgspec.Raw(msgspec.json.encode(rendered[0] if self._is_chat else rendered))

    def _prompt(self, request: GenerationRequest, *, is_stream: bool) -> RenderedPrompt:
        return RenderedPrompt(
            request_id=request.request_id,
            model=self._model_name,
            prompt=request.prompt.text,
            token_ids=request.prompt.token_ids,
            sampling_params=_sampling(request),
            stream=is_stream,
            priority=request.priority,
            cache_salt=request.cache_salt or None,
        )


def _sampling(request: GenerationRequest) -> RenderedSampling:
    params = request.params
    return RenderedSampling(
        n=request.n,
        max_tokens=params.max_tokens,
        min_tokens=params.min_tokens,
        temperature=params.temperature,
        top_p=params.top_p,
        top_k=params.top_k,
        min_p=params.min_p,
        presence_penalty=params.presence_penalty,
        frequency_penalty=params.frequency_penalty,
        repetition_penalty=params.repetition_penalty,
        seed=params.seed,
        stop=request.stop_strings,
        stop_token_ids=params.stop_token_ids,
        ignore_eos=params.ignore_eos,
        logprobs=params.num_logprobs,
        prompt_logprobs=params.num_prompt_logprobs,
        skip_special_tokens=request.skip_special_tokens,
        include_stop_str_in_output=request.include_stop_str_in_output,
    )


def _chats(services: Services) -> Rendering:
    dialect = ChatCompletions(services.model, services.limits, services.chats)
    return Rendering(services, dialect, is_chat=True)


def _completions(services: Services) -> Rendering:
    return Rendering(services, Completions(services.model, services.limits), is_chat=False)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/chat/completions/render",
        prefixes=PREFIXES,
        summary="Returns the prompt and the sampling parameters of a chat; generates nothing.",
        endpoint=lambda services: services.make_body_endpoint(_chats(services).render),
        choice=choose_for("generate"),
        bodies=(ChatCompletionRequest,),
        answers=(RenderedPrompt,),
    ),
    Operation(
        method="post",
        path="/v1/completions/render",
        prefixes=PREFIXES,
        summary="Returns the prompts and the sampling parameters of a completion; generates "
        "nothing.",
        endpoint=lambda services: services.make_body_endpoint(_completions(services).render),
        choice=choose_for("generate"),
        bodies=(CompletionRequest,),
        answers=(list[RenderedPrompt],),
    ),
)
