"""Puts files into a container, lists, returns and deletes them."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ouzel.api.containers.endpoints import find_container
from ouzel.api.containers.objects import (
    ContainerFileList,
    ContainerFileObject,
    CreateContainerFileRequest,
    DeletedContainerFile,
    cut_page,
)
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.pages import PAGE_PARAMETERS, describe_page, read_page
from ouzel.api.http.exchange import get_exchange, get_header
from ouzel.api.http.form_parser import FileBegin, FileBytes, FormField, FormPart
from ouzel.api.http.form_reader import FormReader
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.records import ContainerFile
from ouzel.responses.hosted.request_container import copy_upload
from ouzel.wire.decode import decode_body

_FILE = "file"
_FORM = {
    "type": "object",
    "properties": {"file": {"type": "string", "format": "binary"}, "file_id": {"type": "string"}},
}
_PIECE_BYTES = 2**20


class ContainerFileEndpoints:
    def __init__(self, catalogue: Catalogue) -> None:
        self._shared = catalogue.shared

    async def create(self, request: Request) -> Response:
        container = find_container(self._shared.containers, request)
        kind = get_header(request.scope, b"content-type") or ""
        bodies = self._shared.bodies
        with bodies.share() as share:
            if kind.startswith("multipart/"):
                share.expect(2 * _PIECE_BYTES)
                file = await self._receive(container, request)
            else:
                body = await bodies.read(request.scope, request.receive, share)
                fields = decode_body(body, CreateContainerFileRequest)
                file = await self._copy(container, request, fields.file_id)
        return json_response(ContainerFileObject.of(container, file))

    async def list(self, request: Request) -> Response:
        container = find_container(self._shared.containers, request)
        asked = read_page(Query(request.query_params, *PAGE_PARAMETERS), order="desc")
        page, has_more = cut_page(await container.list_files(), asked)
        show = partial(ContainerFileObject.of, container)
        return json_response(ContainerFileList.of(page, show, has_more=has_more))

    async def retrieve(self, request: Request) -> Response:
        container = find_container(self._shared.containers, request)
        file = await container.find_file(_read_id(request))
        return json_response(ContainerFileObject.of(container, file))

    async def content(self, request: Request) -> Response:
        container = find_container(self._shared.containers, request)
        file = await container.find_file(_read_id(request))
        pieces = container.read_file(file)
        first = await anext(pieces, b"")  # an error is answered with its status
        name = quote(file.path.rpartition("/")[2])
        return StreamingResponse(
            _join(first, pieces),
            media_type="application/octet-stream",
            headers={
                "content-disposition": f"attachment; filename*=UTF-8''{name}",
                "x-content-type-options": "nosniff",
            },
        )

    async def delete(self, request: Request) -> Response:
        container = find_container(self._shared.containers, request)
        file_id = _read_id(request)
        await container.delete_file(file_id)
        return json_response(DeletedContainerFile(file_id))

    async def _copy(self, container: Container, request: Request, file_id: str) -> ContainerFile:
        key_id = get_exchange(request.scope).key_id
        return await copy_upload(container, self._shared.store, key_id, file_id, "file_id")

    async def _receive(self, container: Container, request: Request) -> ContainerFile:
        """Writes the file of a form into the container, or copies the file that the form names."""
        form = FormReader(
            request.scope,
            request.receive,
            max_file_bytes=min(self._shared.max_file_bytes, container.limits.file_bytes),
            body_timeout_s=self._shared.limits.body_timeout_s,
        )
        file_id: str | None = None
        async with aclosing(form.parts()) as parts:
            async for part in parts:
                match part:
                    case FormField("file_id", text):
                        file_id = text
                    case FileBegin(name, filename):
                        if name != _FILE:
                            raise InvalidRequest("must not be a file", field=name)
                        return await container.write_file(filename, _read_file(parts))
                    case _:
                        pass
        if file_id is None:
            raise InvalidRequest("is required, or file_id", field=_FILE)
        return await self._copy(container, request, file_id)


async def _read_file(parts: AsyncGenerator[FormPart, None]) -> AsyncIterator[bytes]:
    async for part in parts:
        match part:
            case FileBytes(data):
                yield data
            case FileBegin():
                raise InvalidRequest("must be given once", field=_FILE)
            case _:
                pass


async def _join(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _read_id(request: Request) -> str:
    file_id = request.path_params["file_id"]
    assert isinstance(file_id, str)
    return file_id


_PATH = "/v1/containers/{container_id}/files"
OPERATIONS = (
    Operation(
        method="post",
        path=_PATH,
        prefixes=PREFIXES,
        summary="Puts a file into a container: multipart/form-data, or the id of an upload.",
        overall=lambda catalogue: ContainerFileEndpoints(catalogue).create,
        form=_FORM,
        answers=(ContainerFileObject,),
    ),
    Operation(
        method="get",
        path=_PATH,
        prefixes=PREFIXES,
        summary="Lists the files of a container.",
        overall=lambda catalogue: ContainerFileEndpoints(catalogue).list,
        query=describe_page("file", order="desc"),
        answers=(ContainerFileList,),
    ),
    Operation(
        method="get",
        path=f"{_PATH}/{{file_id}}",
        prefixes=PREFIXES,
        summary="Describes a file of a container.",
        overall=lambda catalogue: ContainerFileEndpoints(catalogue).retrieve,
        answers=(ContainerFileObject,),
    ),
    Operation(
        method="get",
        path=f"{_PATH}/{{file_id}}/content",
        prefixes=PREFIXES,
        summary="Returns the content of a file of a container.",
        overall=lambda catalogue: ContainerFileEndpoints(catalogue).content,
        media_type="application/octet-stream",
    ),
    Operation(
        method="delete",
        path=f"{_PATH}/{{file_id}}",
        prefixes=PREFIXES,
        summary="Deletes a file of a container.",
        overall=lambda catalogue: ContainerFileEndpoints(catalogue).delete,
        answers=(DeletedContainerFile,),
    ),
)
