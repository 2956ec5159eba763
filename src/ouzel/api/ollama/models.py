"""Answers requests of Ollama's clients about models: lists, loaded models, details, capabilities.

Sizes and shapes come from the model's files, limits and precision from the engine.
"""

import hashlib
import time
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.on_demand import FilesOfModel, OnDemand
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.send import json_response
from ouzel.api.ollama.answer import rfc3339
from ouzel.api.ollama.model_name import check_name, choose_by_tagged_name, full_name
from ouzel.api.openai.models import list_capabilities
from ouzel.generation import ServedModel
from ouzel.wire.decode import decode_body

# the version of Ollama whose API is implemented; clients refuse versions that are too low for them
API_VERSION = "0.12.11"
# Clients show a time more than a century away as "Forever".
_NEVER = "2300-01-01T00:00:00Z"
_UNITS = ((1e9, "B", 1), (1e6, "M", 2), (1e3, "K", 2))


class OllamaModelDetails(msgspec.Struct):
    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class OllamaModel(msgspec.Struct):
    name: str
    model: str
    modified_at: str
    size: int  # bytes
    digest: str
    details: OllamaModelDetails
    capabilities: list[str]


class OllamaModels(msgspec.Struct):
    models: list[OllamaModel]


class OllamaRunningModel(msgspec.Struct):
    name: str
    model: str
    size: int
    digest: str
    details: OllamaModelDetails
    expires_at: str
    size_vram: int
    context_length: int


class OllamaRunningModels(msgspec.Struct):
    models: list[OllamaRunningModel]


class OllamaShowRequest(msgspec.Struct, kw_only=True):
    model: Annotated[str | None, Meta(description="One of the served model names.")] = None
    name: Annotated[str | None, Meta(description="The old name of model.")] = None
    verbose: Annotated[bool | None, Meta(description="A hint without effect.")] = None


class OllamaModelCard(msgspec.Struct):
    modelfile: str
    parameters: str
    template: str
    details: OllamaModelDetails
    model_info: dict[str, str | int]
    capabilities: list[str]
    modified_at: str


class OllamaVersion(msgspec.Struct):
    version: str


async def tell_version(request: Request) -> Response:
    return json_response(OllamaVersion(API_VERSION))


class ModelLists:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def tags(self, request: Request) -> Response:
        """Lists all models, in memory or not."""
        on_demand = self._catalogue.on_demand
        if on_demand is None:
            return json_response(OllamaModels([card.listed(name) for card, name in self._cards()]))
        await on_demand.refresh()
        await on_demand.wait_for_files()
        listed = [card.listed(name) for card, name in self._cards()]
        return json_response(
            OllamaModels(listed + [_list_away(name, on_demand) for name in self._catalogue.away])
        )

    async def running(self, request: Request) -> Response:
        """Lists the models in memory, with the time when each is unloaded."""
        return json_response(
            OllamaRunningModels(
                [card.running(name, self._expires_at(name)) for card, name in self._cards()]
            )
        )

    def _expires_at(self, name: str) -> str:
        on_demand = self._catalogue.on_demand
        managed = None if on_demand is None else on_demand.residents.find(name)
        if on_demand is None or managed is None:
            return _NEVER
        left_s = on_demand.residents.find_rest_s(managed)
        return _NEVER if left_s is None else rfc3339(time.time_ns() + int(left_s * 1e9))

    def _cards(self) -> Iterator[tuple["ModelCard", str]]:
        for each in self._catalogue:
            card = ModelCard(each.model)
            for name in each.model.names:
                yield card, name


class ModelCard:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def show(self, _: Request, body: bytes) -> OllamaModelCard:
        fields = decode_body(body, OllamaShowRequest)
        name = fields.model or fields.name
        check_name(name, self._model.names)
        template = self._model.renderer.chat_template
        text = "" if template is None else template.default_source
        parameters = list(_parameters(self._model))
        return OllamaModelCard(
            modelfile=_modelfile(self._model.names[0], text, parameters),
            parameters="\n".join(f"{key:<30} {value}" for key, value in parameters),
            template=text,
            details=_details(self._model),
            model_info=_model_info(self._model, name or self._model.names[0]),
            capabilities=_capabilities(self._model),
            modified_at=self._modified_at,
        )

    @property
    def _modified_at(self) -> str:
        return rfc3339(self._model.created * 1_000_000_000)

    def listed(self, name: str) -> OllamaModel:
        full = full_name(name)
        size = self._model.facts.num_bytes or 0
        return OllamaModel(
            full,
            full,
            self._modified_at,
            size,
            _digest(self._model),
            details=_details(self._model),
            capabilities=_capabilities(self._model),
        )

    def running(self, name: str, expires_at: str) -> OllamaRunningModel:
        listed = self.listed(name)
        return OllamaRunningModel(
            listed.name,
            listed.model,
            listed.size,
            listed.digest,
            listed.details,
            expires_at=expires_at,
            size_vram=0,
            context_length=self._model.engine.info.max_model_len,
        )


def _read_files(name: str, on_demand: OnDemand) -> FilesOfModel:
    managed = on_demand.residents.find(name)
    assert managed is not None
    return on_demand.describe(managed)


def _list_away(name: str, on_demand: OnDemand) -> OllamaModel:
    """Describes a model that is not in memory by its files."""
    files, full = _read_files(name, on_demand), full_name(name)
    return OllamaModel(
        full,
        full,
        rfc3339(files.created * 1_000_000_000),
        files.num_bytes or 0,
        hashlib.sha256(f"{name} {files.created} {files.num_bytes}".encode()).hexdigest(),
        details=_details_away(files),
        capabilities=_capabilities_away(files),
    )


def _show_away(on_demand: OnDemand, name: str, body: bytes) -> OllamaModelCard:
    """Describes a model that is not in memory: clients ask for all models, which must not load."""
    decode_body(body, OllamaShowRequest)
    files = _read_files(name, on_demand)
    kind = files.model_type
    values: dict[str, str | int | None] = {
        "general.architecture": kind,
        "general.basename": name,
        f"{kind}.context_length": files.max_model_len,
    }
    return OllamaModelCard(
        modelfile=_modelfile(name, "", []),
        parameters="",
        template="",
        details=_details_away(files),
        model_info={key: value for key, value in values.items() if value is not None},
        capabilities=_capabilities_away(files),
        modified_at=rfc3339(files.created * 1_000_000_000),
    )


def _details_away(files: FilesOfModel) -> OllamaModelDetails:
    families = [files.model_type] if files.model_type else []
    return OllamaModelDetails("", "", files.model_type, families, "", "")


def _capabilities_away(files: FilesOfModel) -> list[str]:
    if files.task in ("embed", "score", "transcribe", "speak"):
        return ["embedding"] if files.task == "embed" else []
    return ["completion", "vision"] if files.has_vision else ["completion"]


def _details(model: ServedModel) -> OllamaModelDetails:
    info, facts = model.engine.info, model.facts
    return OllamaModelDetails(
        parent_model="",
        format=facts.file_format,
        family=info.model_type,
        families=[info.model_type],
        parameter_size="" if facts.num_parameters is None else _in_words(facts.num_parameters),
        quantization_level=info.weights,
    )


def _in_words(number: int) -> str:
    """Formats a count as Ollama does: 4.0M is `3.97M`, 8.0B is `8.0B`."""
    for unit, letter, digits in _UNITS:
        if number >= unit:
            return f"{number / unit:.{digits}f}{letter}"
    return str(number)


def _digest(model: ServedModel) -> str:
    """Returns a digest that changes if the same request might get another answer."""
    return hashlib.sha256(model.system_fingerprint.encode()).hexdigest()


def _capabilities(model: ServedModel) -> list[str]:
    """Returns the capabilities by Ollama's names."""
    ours = list_capabilities(model)
    names = {
        "embedding": "embedding",
        "completion": "completion",
        "vision": "vision",
        "tools": "tools",
        "reasoning": "thinking",
    }
    inserts = ["insert"] if model.renderer.fills_in else []
    return [theirs for name, theirs in names.items() if name in ours] + inserts


def _model_info(model: ServedModel, name: str) -> dict[str, str | int]:
    info, facts = model.engine.info, model.facts
    kind = info.model_type
    values = {
        "general.architecture": kind,
        "general.basename": name,
        "general.parameter_count": facts.num_parameters,
        f"{kind}.context_length": info.max_model_len,
        f"{kind}.embedding_length": facts.hidden_size,
        f"{kind}.block_count": facts.num_layers,
        f"{kind}.attention.head_count": facts.num_heads,
        f"{kind}.attention.head_count_kv": facts.num_kv_heads,
        f"{kind}.vocab_size": info.vocab_size,
    }
    return {key: value for key, value in values.items() if value is not None}


def _parameters(model: ServedModel) -> Iterator[tuple[str, str]]:
    """Yields the model's default parameters by Ollama's names."""
    yield "num_ctx", str(model.engine.info.max_model_len)
    defaults = model.sampling_defaults
    numbers = {
        "temperature": 0.0 if defaults.do_sample is False else defaults.temperature,
        "top_k": defaults.top_k,
        "top_p": defaults.top_p,
        "min_p": defaults.min_p,
        "typical_p": defaults.typical_p,
        "repeat_penalty": defaults.repetition_penalty,
        "presence_penalty": defaults.presence_penalty,
        "frequency_penalty": defaults.frequency_penalty,
        "num_predict": defaults.max_new_tokens,
    }
    for name, value in numbers.items():
        if value is not None:
            yield name, f"{value:g}"
    stops = defaults.stop_strings or []
    for text in [stops] if isinstance(stops, str) else stops:
        yield "stop", msgspec.json.encode(text).decode()


def _modelfile(name: str, template: str, parameters: list[tuple[str, str]]) -> str:
    lines = [
        "# The served model in the form of a Modelfile; the template is Jinja.",
        f"FROM {name}",
    ]
    if template:
        lines.append(f'TEMPLATE """{template}"""')
    return "\n".join([*lines, *(f"PARAMETER {key} {value}" for key, value in parameters)]) + "\n"


OPERATIONS = (
    Operation(
        method="get",
        path="/api/tags",
        summary="Ollama: lists the served models.",
        overall=lambda catalogue: ModelLists(catalogue).tags,
        answers=(OllamaModels,),
        words="ollama",
    ),
    Operation(
        method="get",
        path="/api/ps",
        summary="Ollama: lists the loaded models, which are the served models.",
        overall=lambda catalogue: ModelLists(catalogue).running,
        answers=(OllamaRunningModels,),
        words="ollama",
    ),
    Operation(
        method="post",
        path="/api/show",
        summary="Ollama: describes a model and its capabilities.",
        endpoint=lambda services: services.make_body_endpoint(ModelCard(services.model).show),
        choice=choose_by_tagged_name,
        bodies=(OllamaShowRequest,),
        answers=(OllamaModelCard,),
        words="ollama",
        answer_away=_show_away,
    ),
    Operation(
        method="get",
        path="/api/version",
        summary="Ollama: returns the version of the implemented API.",
        overall=lambda _: tell_version,
        answers=(OllamaVersion,),
        words="ollama",
    ),
)
