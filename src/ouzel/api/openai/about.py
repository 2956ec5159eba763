"""Answers GET /version, /load and /tokenizer_info as vLLM does, for benchmark tools."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel import __version__
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.send import json_response
from ouzel.generation import ServedModel

# transformers' class for a tokenizer.json
_TOKENIZER_CLASS = "PreTrainedTokenizerFast"


class Version(msgspec.Struct):
    version: str


class Load(msgspec.Struct):
    server_load: int  # requests that run or wait


class TokenizerConfig(msgspec.Struct, kw_only=True):
    """The answer of /tokenizer_info, with the fields of `tokenizer_config.json`.

    The answer also has a field for each further special token that the tokenizer names.
    """

    tokenizer_class: str = _TOKENIZER_CLASS
    model_max_length: int
    chat_template: str | None
    bos_token: str | None = None
    eos_token: str | None = None
    pad_token: str | None = None
    unk_token: str | None = None
    additional_special_tokens: list[str]
    add_bos_token: bool  # whether the tokenizer adds special tokens to a text
    add_eos_token: bool


async def tell_version(request: Request) -> Response:
    return json_response(Version(__version__))


class ServerLoad:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def tell(self, request: Request) -> Response:
        return json_response(
            Load(sum(each.model.engine.num_unfinished for each in self._catalogue.bases))
        )


class TokenizerInfo:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def tell(self, request: Request) -> Response:
        return json_response(self._tokenizer_config())

    def _tokenizer_config(self) -> dict[str, object]:
        tokenizer, template = self._model.tokenizer, self._model.renderer.chat_template
        named = tokenizer.special_tokens
        sources = {} if template is None else template.sources
        around = tokenizer.encode("", add_special_tokens=True)
        special = [
            tokenizer.token_text(token_id) for token_id in sorted(tokenizer.special_token_ids)
        ]
        config = TokenizerConfig(
            model_max_length=self._model.engine.info.max_model_len,
            chat_template=sources.get("default", next(iter(sources.values()), None)),
            additional_special_tokens=[text for text in special if text not in named.values()],
            add_bos_token=around[:1] == self._find_ids("bos_token"),
            add_eos_token=around[-1:] == self._find_ids("eos_token"),
        )
        return {**msgspec.structs.asdict(config), **named}

    def _find_ids(self, name: str) -> list[int | None]:
        return [self._model.tokenizer.token_id(self._model.tokenizer.special_tokens.get(name, ""))]


OPERATIONS = (
    Operation(
        method="get",
        path="/version",
        summary="The server's version.",
        overall=lambda _: tell_version,
        answers=(Version,),
    ),
    Operation(
        method="get",
        path="/load",
        summary="How many requests run or wait.",
        overall=lambda catalogue: ServerLoad(catalogue).tell,
        answers=(Load,),
    ),
    Operation(
        method="get",
        path="/tokenizer_info",
        summary="The tokenizer's configuration: special tokens, chat template, limits.",
        endpoint=lambda services: TokenizerInfo(services.model).tell,
        answers=(TokenizerConfig,),
    ),
)
