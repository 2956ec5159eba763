"""Lists the prompt templates of the server, without their texts: GET /prompts, /prompts/{id}."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.send import json_response
from ouzel.responses.templates.template import PromptTemplate


class PromptVersionObject(msgspec.Struct, frozen=True):
    version: str
    variables: tuple[str, ...]


class PromptObject(msgspec.Struct, frozen=True, tag_field="object", tag="prompt"):
    id: str
    description: str
    default_version: str
    versions: list[PromptVersionObject]

    @classmethod
    def of(cls, template: PromptTemplate) -> "PromptObject":
        versions = [
            PromptVersionObject(version.name, version.variables)
            for version in template.versions.values()
        ]
        return cls(template.id, template.description, template.default_version, versions)


class PromptList(msgspec.Struct, frozen=True, tag_field="object", tag="list"):
    data: list[PromptObject]


class Prompts:
    def __init__(self, catalogue: Catalogue) -> None:
        self._prompts = catalogue.shared.prompts

    async def list(self, request: Request) -> Response:
        templates = self._prompts.templates.values()
        return json_response(PromptList([PromptObject.of(each) for each in templates]))

    async def retrieve(self, request: Request) -> Response:
        """Returns one template. Raises PromptNotFound."""
        template = self._prompts.find(request.path_params["prompt_id"], "prompt_id")
        return json_response(PromptObject.of(template))


OPERATIONS = (
    Operation(
        method="get",
        path="/v1/prompts",
        prefixes=PREFIXES,
        summary="Lists the prompt templates of the server.",
        overall=lambda catalogue: Prompts(catalogue).list,
        answers=(PromptList,),
    ),
    Operation(
        method="get",
        path="/v1/prompts/{prompt_id}",
        prefixes=PREFIXES,
        summary="Returns the versions of a prompt template and their variables.",
        overall=lambda catalogue: Prompts(catalogue).retrieve,
        answers=(PromptObject,),
    ),
)
