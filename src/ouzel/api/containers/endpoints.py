"""Makes, lists and ends containers, in which models run code. A client finds only its own key's."""

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.containers.objects import (
    ContainerList,
    ContainerObject,
    CreateContainerRequest,
    DeletedContainer,
    cut_page,
)
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.endpoint.pages import PAGE_PARAMETERS, describe_page, read_page
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.code_interpreter.records import ContainerNotFound
from ouzel.responses.hosted.request_container import (
    check_network_policy,
    check_uploads,
    copy_upload,
    read_memory_limit,
)
from ouzel.wire.decode import decode_body


class ContainerEndpoints:
    def __init__(self, catalogue: Catalogue) -> None:
        self._shared = catalogue.shared

    async def create(self, request: Request) -> Response:
        shared = self._shared
        with shared.bodies.share() as share:
            body = await shared.bodies.read(request.scope, request.receive, share)
        fields = decode_body(body, CreateContainerRequest)
        if shared.containers is None:
            raise InvalidRequest(
                "a container cannot be made: the sandbox is off; the operator turns it on with "
                "--sandbox"
            )
        check_network_policy(fields.network_policy, "network_policy")
        most_bytes = shared.containers.plan.limits.memory_bytes
        memory_bytes = read_memory_limit(fields.memory_limit, most_bytes, "memory_limit")
        idle_s = None if fields.expires_after is None else 60.0 * fields.expires_after.minutes
        most_s = shared.containers.max_idle_s
        if idle_s is not None and idle_s > most_s:
            raise InvalidRequest(
                f"must be <= {most_s / 60:g} on this server (sandbox_idle_minutes), "
                f"given {idle_s / 60:g}",
                field="expires_after.minutes",
            )
        key_id, file_ids = get_exchange(request.scope).key_id, fields.file_ids or []
        await check_uploads(shared.store, key_id, file_ids, "file_ids")
        container = await shared.containers.create(
            key_id, name=fields.name, memory_bytes=memory_bytes, idle_s=idle_s
        )
        try:
            for file_id in file_ids:
                await copy_upload(container, shared.store, key_id, file_id, "file_ids")
        except BaseException:
            await container.end("its files could not be copied")
            raise
        return json_response(ContainerObject.of(container))

    async def list(self, request: Request) -> Response:
        query = Query(request.query_params, *PAGE_PARAMETERS, "name")
        shared = self._shared
        key_id, name = get_exchange(request.scope).key_id, query.text("name")
        found = [] if shared.containers is None else shared.containers.list(key_id)
        page, has_more = cut_page(
            [each for each in found if name is None or each.name == name],
            read_page(query, order="desc"),
        )
        return json_response(ContainerList.of(page, ContainerObject.of, has_more=has_more))

    async def retrieve(self, request: Request) -> Response:
        return json_response(ContainerObject.of(find_container(self._shared.containers, request)))

    async def delete(self, request: Request) -> Response:
        container = find_container(self._shared.containers, request)
        await container.end()
        return json_response(DeletedContainer(container.id))


def find_container(containers: Containers | None, request: Request) -> Container:
    """Returns the container that the path names. Raises ContainerNotFound."""
    container_id = request.path_params["container_id"]
    assert isinstance(container_id, str)
    if containers is None:
        raise ContainerNotFound(container_id)
    return containers.find(container_id, get_exchange(request.scope).key_id)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/containers",
        prefixes=PREFIXES,
        summary="Makes a container, in which a model runs code.",
        overall=lambda catalogue: ContainerEndpoints(catalogue).create,
        bodies=(CreateContainerRequest,),
        answers=(ContainerObject,),
    ),
    Operation(
        method="get",
        path="/v1/containers",
        prefixes=PREFIXES,
        summary="Lists the containers.",
        overall=lambda catalogue: ContainerEndpoints(catalogue).list,
        query=(
            *describe_page("container", order="desc"),
            QueryField("name", {"type": "string"}, "Only containers of this name."),
        ),
        answers=(ContainerList,),
    ),
    Operation(
        method="get",
        path="/v1/containers/{container_id}",
        prefixes=PREFIXES,
        summary="Describes a container.",
        overall=lambda catalogue: ContainerEndpoints(catalogue).retrieve,
        answers=(ContainerObject,),
    ),
    Operation(
        method="delete",
        path="/v1/containers/{container_id}",
        prefixes=PREFIXES,
        summary="Ends a container; its files are lost.",
        overall=lambda catalogue: ContainerEndpoints(catalogue).delete,
        answers=(DeletedContainer,),
    ),
)
