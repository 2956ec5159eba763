"""Lists the served models, their context length and capabilities: GET /models and /models/{id}."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.on_demand import FilesOfModel, ModelNotLoaded, OnDemand
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.http.send import json_response
from ouzel.api.openai.codex_models import CodexModel, codex_model
from ouzel.generation import ServedModel, can_read_documents
from ouzel.pooling import Task

# capabilities of models that do not generate
_OTHER_CAPABILITIES: Mapping[Task | None, list[str]] = {
    "embed": ["embedding", "rerank"],
    "score": ["rerank"],
    "transcribe": ["transcription"],
    "speak": ["speech"],
}

_CODEX_QUERY = "client_version"


class Architecture(msgspec.Struct):
    """OpenRouter's fields, which clients look for."""

    modality: str
    input_modalities: list[str]
    output_modalities: list[str]


class ModelObject(msgspec.Struct, tag_field="object", tag="model"):
    id: str
    created: int
    max_model_len: int | None  # vLLM's name, which clients read; null: unknown before a load
    context_length: int | None  # the same number under OpenRouter's name
    architecture: Architecture
    capabilities: list[str]
    owned_by: str = "ouzel"
    root: str | None = None  # vLLM's: the base model of an adapter, as `parent`
    parent: str | None = None
    # the following fields are of models that come and go
    state: str | UnsetType = UNSET
    failure: str | UnsetType = UNSET  # why the last load failed
    disk_bytes: int | UnsetType | None = UNSET  # size of the weights on disk
    # weights and caches in memory; null: not measured yet
    memory_bytes: int | UnsetType | None = UNSET


class ModelList(msgspec.Struct, tag_field="object", tag="list"):
    data: list[ModelObject]
    # Codex's catalogue, for requests with `client_version`
    models: list[CodexModel] | msgspec.UnsetType = msgspec.UNSET
    # entries of the field `tools` for the tools that this server runs; absent without such tools
    hosted_tools: list[dict[str, object]] | msgspec.UnsetType = msgspec.UNSET


class Models:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def list(self, request: Request) -> Response:
        await self._refresh()
        listed = ModelList([self._object(name) for name in self._catalogue.names])
        if offers := self._catalogue.shared.hosted.offers:
            listed.hosted_tools = list(offers)
        if _CODEX_QUERY in request.query_params:
            listed.models = _list_for_codex(self._catalogue)
        return json_response(listed)

    async def retrieve(self, request: Request) -> Response:
        await self._refresh()
        return json_response(self._object(request.path_params["name"]))

    async def _refresh(self) -> None:
        if self._catalogue.on_demand is not None:
            await self._catalogue.on_demand.refresh()
            await self._catalogue.on_demand.wait_for_files()

    def _object(self, name: str) -> ModelObject:
        """Describes a model, in memory or not. Raises ModelNotFound and EngineUnavailable."""
        on_demand = self._catalogue.on_demand
        try:
            described = model_object(name, self._catalogue.find(name).model)
        except ModelNotLoaded:
            assert on_demand is not None
            described = _describe_away(name, on_demand)
        managed = None if on_demand is None else on_demand.residents.find(name)
        if on_demand is not None and managed is not None:
            described.state = managed.state.value
            described.disk_bytes = on_demand.describe(managed).num_bytes
            described.memory_bytes = managed.num_bytes
            if managed.failure is not None:
                described.failure = str(managed.failure)
        return described


def _list_for_codex(catalogue: Catalogue) -> list[CodexModel]:
    """Describes the models in memory that chat with tools, the preferred model first."""
    served = [(name, each.model) for each in catalogue for name in each.model.names]
    return [
        codex_model(name, model, priority)
        for priority, (name, model) in enumerate(served)
        if {"chat", "tools"} <= set(list_capabilities(model))
    ]


def _describe_away(name: str, on_demand: OnDemand) -> ModelObject:
    """Describes a model that is not in memory by its files."""
    managed = on_demand.residents.find(name)
    assert managed is not None
    files = on_demand.describe(managed)
    parent = None if name in managed.names else managed.name
    return ModelObject(
        id=name,
        root=parent,
        parent=parent,
        created=files.created,
        max_model_len=files.max_model_len,
        context_length=files.max_model_len,
        architecture=_guess_architecture(files),
        capabilities=_guess_capabilities(files),
    )


def _guess_architecture(files: FilesOfModel) -> Architecture:
    can_open = can_read_documents() and (files.has_vision or files.has_chat_template)
    reads = {"text": True, "image": files.has_vision, "file": can_open}
    inputs = [name for name, is_read in reads.items() if is_read]
    return _make_architecture(files.task or "generate", inputs)


def _guess_capabilities(files: FilesOfModel) -> list[str]:
    if files.task in _OTHER_CAPABILITIES:
        return _OTHER_CAPABILITIES[files.task]
    can = {"completion": True, "chat": files.has_chat_template, "vision": files.has_vision}
    return [name for name, is_there in can.items() if is_there]


def model_object(name: str, model: ServedModel) -> ModelObject:
    max_model_len = model.engine.info.max_model_len
    parent = model.parent_names[0] if model.parent_names else None
    return ModelObject(
        id=name,
        created=model.created,
        max_model_len=max_model_len,
        context_length=max_model_len,
        architecture=_architecture(model),
        capabilities=list_capabilities(model),
        root=parent,
        parent=parent,
    )


def _architecture(model: ServedModel) -> Architecture:
    renderer = model.renderer
    reads = {
        "text": True,
        "image": renderer.supports_images,
        "video": renderer.readable.videos,
        "audio": renderer.readable.sounds,
        "file": renderer.reads_documents,
    }
    inputs = [name for name, is_read in reads.items() if is_read]
    return _make_architecture(model.engine.info.task, inputs)


def _make_architecture(task: Task, inputs: list[str]) -> Architecture:
    match task:
        case "generate":
            return Architecture(f"{'+'.join(inputs)}->text", inputs, ["text"])
        case "transcribe":
            return Architecture("audio->text", ["audio"], ["text"])
        case "speak":
            return Architecture("text->audio", ["text"], ["audio"])
        case "embed" | "score":
            made = "embeddings" if task == "embed" else "scores"
            return Architecture(f"text->{made}", ["text"], [made])


def list_capabilities(model: ServedModel) -> list[str]:
    task = model.engine.info.task
    if task == "embed" and "text" not in model.engine.info.forms:
        return _OTHER_CAPABILITIES["score"]  # vectors of tokens only, which compare texts
    if task in _OTHER_CAPABILITIES:
        return _OTHER_CAPABILITIES[task]
    template, output_format = model.renderer.chat_template, model.output_format
    can = {
        "completion": True,
        "chat": template is not None,
        "tools": template is not None
        and template.capabilities.tools
        and output_format.calls is not None,
        "reasoning": template is not None
        and template.reasons
        and output_format.reasoning is not None,
        "vision": model.renderer.supports_images,
        "hearing": model.renderer.readable.sounds,
        "infill": model.renderer.fills_in,
    }
    return [name for name, is_there in can.items() if is_there]


OPERATIONS = (
    Operation(
        method="get",
        path="/v1/models",
        prefixes=PREFIXES,
        summary="Lists the served models; with the header `anthropic-version` in Anthropic's form.",
        query=(
            QueryField(
                _CODEX_QUERY,
                {"type": "string"},
                "Any version of Codex: adds `models`, the list in Codex's form.",
            ),
        ),
        overall=lambda catalogue: Models(catalogue).list,
        answers=(ModelList,),
    ),
    Operation(
        method="get",
        path="/v1/models/{name}",
        prefixes=PREFIXES,
        has_slashes=True,
        summary="Describes a served model; with the header `anthropic-version` in Anthropic's "
        "form.",
        overall=lambda catalogue: Models(catalogue).retrieve,
        answers=(ModelObject,),
    ),
)
