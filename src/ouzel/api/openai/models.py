"""GET /models and /models/{id} say what is served, how long its context is and what it can do."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.send import json_response
from ouzel.errors import ModelNotFound
from ouzel.generation import ServedModel


class Architecture(msgspec.Struct):
    """It has OpenRouter's names, which clients look for."""

    modality: str
    input_modalities: list[str]
    output_modalities: list[str]


class ModelObject(msgspec.Struct, tag_field="object", tag="model"):
    id: str
    created: int
    max_model_len: int  # vLLM's name, which clients look for
    context_length: int  # the same, under OpenRouter's name
    architecture: Architecture
    capabilities: list[str]
    owned_by: str = "ouzel"
    root: None = None  # vLLM's: of which model this is an adapter
    parent: None = None


class ModelList(msgspec.Struct, tag_field="object", tag="list"):
    data: list[ModelObject]


class Models:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def list(self, request: Request) -> Response:
        return json_response(ModelList([self._object(name) for name in self._model.names]))

    async def retrieve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._model.names:
            raise ModelNotFound(f"the model {name[:100]!r} does not exist", param="model")
        return json_response(self._object(name))

    def _object(self, name: str) -> ModelObject:
        max_model_len = self._model.engine.info.max_model_len
        return ModelObject(
            id=name,
            created=self._model.created,
            max_model_len=max_model_len,
            context_length=max_model_len,
            architecture=_architecture(self._model),
            capabilities=capabilities_of(self._model),
        )


def _architecture(model: ServedModel) -> Architecture:
    renderer, task = model.renderer, model.engine.info.task
    if task != "generate":
        made = "embeddings" if task == "embed" else "scores"
        return Architecture(f"text->{made}", ["text"], [made])
    reads = {"text": True, "image": renderer.sees, "video": renderer.sees_videos, "file": renderer.sees_documents}
    inputs = [name for name, is_read in reads.items() if is_read]
    return Architecture(f"{'+'.join(inputs)}->text", inputs, ["text"])


def capabilities_of(model: ServedModel) -> list[str]:
    task = model.engine.info.task
    if task != "generate":
        return ["embedding", "rerank"] if task == "embed" else ["rerank"]
    template, output_format = model.renderer.chat_template, model.output_format
    can = {
        "completion": True,
        "chat": template is not None,
        "tools": template is not None and template.capabilities.tools and output_format.calls is not None,
        "reasoning": template is not None and template.reasons and output_format.reasoning is not None,
        "vision": model.renderer.sees,
    }
    return [name for name, is_there in can.items() if is_there]


OPERATIONS = (
    Operation(
        method="get",
        path="/v1/models",
        prefixes=PREFIXES,
        summary="What is served. In Anthropic's form for who sends `anthropic-version`.",
        endpoint=lambda services: Models(services.model).list,
        answers=(ModelList,),
    ),
    Operation(
        method="get",
        path="/v1/models/{name}",
        prefixes=PREFIXES,
        has_slashes=True,
        summary="One served model. In Anthropic's form for who sends `anthropic-version`.",
        endpoint=lambda services: Models(services.model).retrieve,
        answers=(ModelObject,),
    ),
)
