"""Converts between texts or chats and token ids: POST /tokenize and /detokenize.

The ids are the engine's input. The field `text` is OpenVINO Model Server's; `prompt` and `messages`
are vLLM's. Texts may exceed the context, because clients split documents by tokens. Long work runs
on threads that nothing else uses.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.openai.input_fields import refuse_fields_of_others
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.wire.chat_prompt import (
    AddGenerationPrompt,
    AddSpecialTokens,
    ChatTemplateText,
    ContinueFinalMessage,
    Effort,
    JsonObjects,
    RetrievedDocuments,
    TemplateKwargs,
    Thinking,
    chat_rendering,
    has_own_template,
)
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.message_schema import Messages
from ouzel.wire.model_name import ModelName
from ouzel.wire.options import check_model
from ouzel.worker_threads import LONG_BODY_BYTES, PreparationThreads, WorkerThreads

# limit for an answer with padding, and for a request with token ids
_MAX_TOKENS = 2**20
# limit for all texts of a request together; larger for models with a long context
_MAX_TEXT_BYTES = 2**20
_CONTEXT_BYTES_PER_TOKEN = 8
_MAX_TEXTS = 4096
_INPUTS = ("text", "prompt", "messages")
# fields that only some inputs allow, with these inputs
_GOES_WITH = {
    "max_length": ("text",),
    "pad_to_max_length": ("text",),
    "padding_side": ("text",),
    "return_token_strs": ("prompt", "messages"),
    "tools": ("messages",),
    "chat_template": ("messages",),
    "chat_template_kwargs": ("messages",),
    "add_generation_prompt": ("messages",),
    "continue_final_message": ("messages",),
    "documents": ("messages",),
    "reasoning_effort": ("messages",),
    "enable_thinking": ("messages",),
    "thinking": ("messages",),
}


Result = TypeVar("Result")


class TokenizeRequest(msgspec.Struct, kw_only=True):
    model: ModelName = None
    text: (
        Annotated[str, Meta(description="A text, or several; answered with the token ids alone.")]
        | Annotated[list[str], Meta(min_length=1, max_length=_MAX_TEXTS)]
        | None
    ) = None
    prompt: Annotated[
        str | None, Meta(description="A text; answered with the token ids and their count.")
    ] = None
    messages: Messages | None = None
    tools: Annotated[JsonObjects | None, Meta(description="Tools for the chat template.")] = None
    chat_template: ChatTemplateText = None
    chat_template_kwargs: TemplateKwargs = None
    add_generation_prompt: AddGenerationPrompt = None
    continue_final_message: ContinueFinalMessage = None
    documents: RetrievedDocuments = None
    reasoning_effort: Effort = None
    enable_thinking: Thinking = None
    thinking: Thinking = None
    add_special_tokens: AddSpecialTokens = None
    max_length: Annotated[int, Meta(ge=1, description="Cuts longer texts at the end.")] | None = (
        None
    )
    pad_to_max_length: Annotated[
        bool | None, Meta(description="Pads shorter texts to max_length.")
    ] = None
    padding_side: Annotated[
        Literal["left", "right"] | None, Meta(description="The side of the padding.")
    ] = None
    return_token_strs: Annotated[
        bool | None, Meta(description="Returns the text of each token, as logprobs do.")
    ] = None


class DetokenizeRequest(msgspec.Struct, kw_only=True):
    tokens: Annotated[
        list[Annotated[int, Meta(ge=0)]], Meta(max_length=_MAX_TOKENS, description="Token ids.")
    ]
    model: ModelName = None
    skip_special_tokens: Annotated[
        bool | None, Meta(description="Leaves special tokens out of the text.")
    ] = None


class TokenizedText(msgspec.Struct):
    """Token ids. `text` is answered with `tokens` alone, a list for each of several texts."""

    tokens: Sequence[int | list[int]]
    count: int | UnsetType = UNSET
    max_model_len: int | UnsetType = UNSET
    token_strs: list[str] | UnsetType | None = UNSET
    prompt: str | UnsetType = UNSET  # the rendered text of `messages`


class DetokenizedText(msgspec.Struct):
    prompt: str


class Tokenizing:
    def __init__(
        self, model: ServedModel, threads: WorkerThreads, preparing: PreparationThreads
    ) -> None:
        self._model = model
        self._tokenizer = model.tokenizer
        self._threads = threads
        self._preparing = preparing
        self._max_text_bytes = max(
            _MAX_TEXT_BYTES, _CONTEXT_BYTES_PER_TOKEN * model.engine.info.max_model_len
        )

    async def tokenize(self, _: Request, body: bytes) -> msgspec.Raw:
        fields = await self._run(partial(parse_object, body), is_short=len(body) <= LONG_BODY_BYTES)
        work = partial(_encode_answer, self._tokenize, fields)
        if has_own_template(fields):
            return await self._preparing.run(work, len(body), has_own_template=True)
        is_short = len(body) <= LONG_BODY_BYTES and not fields.get("pad_to_max_length")
        return await self._run(work, is_short=is_short)

    async def detokenize(self, _: Request, body: bytes) -> msgspec.Raw:
        return await self._run(
            lambda: _encode_answer(self._detokenize, parse_object(body)),
            is_short=len(body) <= LONG_BODY_BYTES,
        )

    async def _run(self, work: Callable[[], Result], *, is_short: bool) -> Result:
        return await self._threads.run(work, is_short=is_short)

    def _tokenize(self, fields: JsonObject) -> TokenizedText:
        _check_num("text", fields, _MAX_TEXTS)
        request = decode_object(fields, TokenizeRequest)
        check_model(request.model, self._model)
        _check_combination(request)
        self._check_len("text", request.text)
        self._check_len("prompt", request.prompt)
        if request.text is not None:
            return TokenizedText(self._texts_to_ids(request, request.text))
        if request.prompt is not None:
            return self._count(
                request, self._encode(request.prompt, request.add_special_tokens is not False)
            )
        rendering = chat_rendering(request, tools=request.tools)
        check = partial(self._check_len, "messages")
        text, token_ids = self._model.renderer.encode_chat(request.messages, rendering, check=check)
        counted = self._count(request, token_ids)
        counted.prompt = text
        return counted

    def _check_len(self, field: str, text: str | list[str] | None) -> None:
        texts = [text] if isinstance(text, str) else text or []
        num_bytes = sum(len(each.encode(errors="replace")) for each in texts)
        if num_bytes > self._max_text_bytes:
            limit = f"must have <= {self._max_text_bytes} bytes of UTF-8"
            raise InvalidRequest(f"{limit}, given {num_bytes}", field=field)

    def _detokenize(self, fields: JsonObject) -> DetokenizedText:
        _check_num("tokens", fields, _MAX_TOKENS)
        request = decode_object(fields, DetokenizeRequest)
        check_model(request.model, self._model)
        last_id = self._tokenizer.vocab_size - 1
        if request.tokens and max(request.tokens) > last_id:
            position = next(
                position for position, token_id in enumerate(request.tokens) if token_id > last_id
            )
            path = f"tokens[{position}]"
            raise InvalidRequest(
                f"must be <= {last_id}, given {request.tokens[position]}", field=path
            )
        return DetokenizedText(
            self._tokenizer.decode(
                request.tokens, skip_special_tokens=request.skip_special_tokens or False
            )
        )

    def _count(self, request: TokenizeRequest, token_ids: list[int]) -> TokenizedText:
        texts = (
            [self._tokenizer.token_text(token_id) for token_id in token_ids]
            if request.return_token_strs
            else None
        )
        return TokenizedText(
            token_ids, len(token_ids), self._model.engine.info.max_model_len, texts
        )

    def _texts_to_ids(
        self, request: TokenizeRequest, text: str | list[str]
    ) -> Sequence[int | list[int]]:
        texts = [text] if isinstance(text, str) else text
        pad = self._padding(request, len(texts))
        special = request.add_special_tokens is not False
        all_ids = [pad(self._encode(each, special, request.max_length)) for each in texts]
        return all_ids[0] if isinstance(text, str) else all_ids

    def _encode(
        self, text: str, add_special_tokens: bool, max_length: int | None = None
    ) -> list[int]:
        """Encodes a text and cuts it to `max_length` tokens.

        A cut text keeps its special tokens.
        """
        token_ids = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        if max_length is None or len(token_ids) <= max_length:
            return token_ids
        num_after = self._num_added_after(token_ids) if add_special_tokens else 0
        after = token_ids[len(token_ids) - num_after :]
        return [*token_ids[: max(max_length - num_after, 0)], *after][:max_length]

    def _num_added_after(self, token_ids: list[int]) -> int:
        around_nothing = self._tokenizer.encode("", add_special_tokens=True)
        num_added = len(around_nothing)
        num_before = next(
            (n for n in range(num_added, -1, -1) if token_ids[:n] == around_nothing[:n]), 0
        )
        after = around_nothing[num_before:]
        return len(after) if token_ids[len(token_ids) - len(after) :] == after else 0

    def _padding(
        self, request: TokenizeRequest, num_texts: int
    ) -> Callable[[list[int]], list[int]]:
        if not request.pad_to_max_length:
            return lambda token_ids: token_ids
        length = request.max_length
        if length is None:
            raise InvalidRequest("needs max_length", field="pad_to_max_length")
        if length * num_texts > _MAX_TOKENS:
            limit = _MAX_TOKENS // num_texts
            message = (
                f"max_length must be <= {limit} to pad {num_texts} texts to it, given {length}"
            )
            raise InvalidRequest(message, param="max_length")
        pad_token = self._tokenizer.special_tokens.get("pad_token")
        pad_ids = self._tokenizer.encode(pad_token, add_special_tokens=False) if pad_token else []
        if len(pad_ids) != 1:
            message = (
                "pad_to_max_length must be false, given true: this model's tokenizer has no "
                "padding token"
            )
            raise InvalidRequest(message, param="pad_to_max_length")

        def pad(token_ids: list[int]) -> list[int]:
            padding = pad_ids * (length - len(token_ids))
            return padding + token_ids if request.padding_side == "left" else token_ids + padding

        return pad


def _encode_answer(answer: Callable[[JsonObject], object], fields: JsonObject) -> msgspec.Raw:
    """Runs `answer` and encodes its result as JSON, in the thread of the caller.

    The result may hold a million numbers.
    """
    return msgspec.Raw(msgspec.json.encode(answer(fields)))


def _check_num(field: str, fields: JsonObject, limit: int) -> None:
    """Refuses a list with too many entries, before each entry is checked."""
    value = fields.get(field)
    if isinstance(value, list) and len(value) > limit:
        raise InvalidRequest(f"must have <= {limit} entries, given {len(value)}", field=field)


def _check_combination(request: TokenizeRequest) -> None:
    names = {name for name, value in msgspec.structs.asdict(request).items() if value is not None}
    inputs = [name for name in _INPUTS if name in names]
    if len(inputs) != 1:
        shown = " and ".join(inputs) or "none of them"
        raise InvalidRequest(
            f"one of text, prompt and messages is required, given {shown}",
            param=inputs[1] if inputs else "text",
        )
    refuse_fields_of_others(
        inputs[0], [name for name in names if getattr(request, name)], _GOES_WITH
    )
    if "padding_side" in names and not request.pad_to_max_length:
        raise InvalidRequest("needs pad_to_max_length to be true", field="padding_side")


def _make_tokenizing(services: Services) -> Tokenizing:
    return Tokenizing(services.model, services.tokenizing, services.threads)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/tokenize",
        prefixes=("", *PREFIXES),  # vLLM has these paths at the root
        summary="Returns the token ids of a text or a chat.",
        endpoint=lambda services: services.make_body_endpoint(_make_tokenizing(services).tokenize),
        bodies=(TokenizeRequest,),
        answers=(TokenizedText,),
    ),
    Operation(
        method="post",
        path="/v1/detokenize",
        prefixes=("", *PREFIXES),
        summary="Returns the text of token ids.",
        endpoint=lambda services: services.make_body_endpoint(
            _make_tokenizing(services).detokenize
        ),
        bodies=(DetokenizeRequest,),
        answers=(DetokenizedText,),
    ),
)
