"""The container of an entry of `tools`: found or made when a call first needs it."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.containers import Containers, new_container_id
from ouzel.hosted_tools.code_interpreter.records import (
    WORK_DIRECTORY,
    ContainerFile,
    ContainerNotFound,
)
from ouzel.responses.hosted.citations import Source, mark_source, write_without_markers
from ouzel.responses.hosted.kinds import JsonObject, OpeningContext
from ouzel.store.base import Store
from ouzel.wire.validation_errors import show_value

FileIds = Annotated[list[str], Meta(max_length=50)]
_GIB = 2**30
_MEMORY = re.compile(r"([1-9]\d{0,3})g")
_MAX_NAMED_FILES = 20


def read_memory_limit(text: str | None, most_bytes: int, field: str) -> int:
    """Returns the bytes of a value such as `4g`; without a value 1 GiB, or the whole limit.

    Raises InvalidRequest.
    """
    if text is None:
        return min(_GIB, most_bytes)
    matched = _MEMORY.fullmatch(text)
    if matched is None:
        raise InvalidRequest(
            f"must be a number of GiB such as 1g, given {show_value(text)}", field=field
        )
    asked = int(matched[1]) * _GIB
    if asked > most_bytes:
        raise InvalidRequest(
            f"must be <= {most_bytes / _GIB:g}g on this server (sandbox_memory_mib), given {text}",
            field=field,
        )
    return asked


def check_network_policy(policy: JsonObject | None, field: str) -> None:
    """Raises InvalidRequest for a policy that allows a network."""
    if policy is not None and policy.get("type") != "disabled":
        raise InvalidRequest(
            f'must be "disabled": containers have no network, given '
            f"{show_value(policy.get('type'))}",
            field=f"{field}.type",
        )


class RequestContainer:
    def __init__(
        self,
        containers: Containers,
        store: Store | None,
        key_id: str | None,
        *,
        container_id: str | None,
        is_new: bool,
        memory_bytes: int | None = None,
        file_ids: Sequence[str] = (),
    ) -> None:
        """`is_new` allows to make a container if there is none with this id."""
        self._containers = containers
        self._store = store
        self._key_id = key_id
        self._id = container_id or new_container_id()
        self._is_new = is_new
        self._memory_bytes = memory_bytes
        self._file_ids = file_ids
        self._turn = asyncio.Lock()

    @property
    def id(self) -> str:
        """Returns the id of the container of the next call."""
        if self._is_new and self._containers.has_ended(self._id):
            self._id = new_container_id()
        return self._id

    async def open(self, container_id: str) -> Container:
        """Returns the container with the files of the request.

        Raises ContainerNotFound, TooManyContainers, SandboxUnavailable and FileRefused.
        """
        async with self._turn:
            try:
                container = self._containers.find(container_id, self._key_id)
            except ContainerNotFound:
                if not self._is_new or self._containers.has_ended(container_id):
                    raise
                container = await self._containers.create(
                    self._key_id,
                    container_id=container_id,
                    memory_bytes=self._memory_bytes,
                    is_automatic=True,
                )
            for file_id in self._file_ids:
                if file_id not in container.copied:
                    await copy_upload(container, self._store, self._key_id, file_id, "file_ids")
            return container


async def copy_upload(
    container: Container, store: Store | None, key_id: str | None, file_id: str, field: str
) -> ContainerFile:
    """Copies an uploaded file into a container. Raises InvalidRequest and FileRefused."""
    found = None if store is None else await store.files.get(file_id, key_id)
    if found is None or store is None:
        raise unknown_upload(file_id, field)
    file = await container.write_file(found.filename, store.files.read(file_id, key_id))
    container.copied.add(file_id)
    return file


async def check_uploads(
    store: Store | None, key_id: str | None, file_ids: Sequence[str], field: str
) -> None:
    """Raises InvalidRequest for an id of no uploaded file."""
    for position, file_id in enumerate(file_ids):
        if store is None or await store.files.get(file_id, key_id) is None:
            raise unknown_upload(file_id, f"{field}[{position}]")


def unknown_upload(file_id: str, field: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be the id of an uploaded file, given {show_value(file_id)}", field=field
    )


def find_earlier(containers: Containers, context: OpeningContext) -> str | None:
    """Returns the id of the newest container before this response that still exists."""
    for item in reversed(context.items):
        named: object = None
        match item.get("type"):
            case "code_interpreter_call":
                named = item.get("container_id")
            case "shell_call":
                environment = item.get("environment")
                named = environment.get("container_id") if isinstance(environment, dict) else None
        if not isinstance(named, str):
            continue
        try:
            return containers.find(named, context.key_id).id
        except ContainerNotFound:
            continue
    return None


def cite_files(
    container: Container, files: Sequence[ContainerFile], numbers: Iterator[int]
) -> tuple[str, list[Source]]:
    """Returns a text that names new files for the model, and the sources in it."""
    if not files:
        return "", []
    sources = [
        Source(number=next(numbers), title=file.path, file_id=file.id, container_id=container.id)
        for file in files[:_MAX_NAMED_FILES]
    ]
    lines = [
        f"{mark_source(source.number)} {WORK_DIRECTORY}/{write_without_markers(file.path)} "
        f"({file.size_bytes} bytes)"
        for source, file in zip(sources, files, strict=False)
    ]
    if len(files) > len(sources):
        lines.append(f"and {len(files) - len(sources)} more")
    head = "New files. Write the marker of a file, such as 【1】, where you tell the user about it."
    return "\n".join([head, *lines]), sources
