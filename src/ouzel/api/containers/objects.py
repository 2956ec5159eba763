"""Defines the bodies and the answers of /containers, as OpenAI defines them."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from ouzel.api.endpoint.object_list import HasId, ObjectList
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.records import WORK_DIRECTORY, ContainerFile
from ouzel.store.records import PageRequest
from ouzel.wire.decode import JsonObject
from ouzel.wire.validation_errors import show_value

_MAX_FILES = 50
_GIB = 2**30


class ExpiresAfter(msgspec.Struct, frozen=True, kw_only=True):
    anchor: Annotated[
        Literal["last_active_at"], Meta(description="The time counts from the last call.")
    ]
    minutes: Annotated[
        int, Meta(ge=1, le=1440, description="At most the server's --sandbox-idle-minutes.")
    ]


class CreateContainerRequest(msgspec.Struct, kw_only=True):
    name: Annotated[str, Meta(max_length=256, description="The name of the container.")]
    expires_after: Annotated[
        ExpiresAfter | None,
        Meta(description="The container ends after this time without a call."),
    ] = None
    file_ids: (
        Annotated[
            list[str],
            Meta(max_length=_MAX_FILES, description="Uploaded files that the container gets."),
        ]
        | None
    ) = None
    memory_limit: Annotated[
        str | None,
        Meta(description="Memory in GiB, such as 1g; at most the server's --sandbox-memory-mib."),
    ] = None
    network_policy: Annotated[
        JsonObject | None,
        Meta(description="Only the type `disabled` is allowed: containers have no network."),
    ] = None


class CreateContainerFileRequest(msgspec.Struct, kw_only=True):
    file_id: Annotated[str, Meta(description="An uploaded file that is copied.")]


class NoNetwork(msgspec.Struct, frozen=True, tag_field="type", tag="disabled"):
    pass


class ContainerObject(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="container"
):
    id: str
    created_at: int  # unix seconds
    name: str
    status: Literal["running"] = "running"
    expires_after: ExpiresAfter
    last_active_at: int
    memory_limit: str
    network_policy: NoNetwork = NoNetwork()

    @classmethod
    def of(cls, container: Container) -> "ContainerObject":
        return cls(
            id=container.id,
            created_at=int(container.created_at),
            name=container.name,
            expires_after=ExpiresAfter(
                anchor="last_active_at", minutes=max(round(container.idle_s / 60), 1)
            ),
            last_active_at=int(container.last_active_at),
            memory_limit=f"{container.limits.memory_bytes / _GIB:g}g",
        )


class ContainerFileObject(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="container.file"
):
    id: str
    bytes: int
    container_id: str
    created_at: int  # unix seconds
    path: str
    source: Literal["user", "assistant"]

    @classmethod
    def of(cls, container: Container, file: ContainerFile) -> "ContainerFileObject":
        return cls(
            id=file.id,
            bytes=file.size_bytes,
            container_id=container.id,
            created_at=int(file.created_at),
            path=f"{WORK_DIRECTORY}/{file.path}",
            source="user" if file.is_users else "assistant",
        )


class DeletedContainer(msgspec.Struct, frozen=True, tag_field="object", tag="container.deleted"):
    id: str
    deleted: bool = True


class DeletedContainerFile(
    msgspec.Struct, frozen=True, tag_field="object", tag="container.file.deleted"
):
    id: str
    deleted: bool = True


class ContainerList(ObjectList[ContainerObject], frozen=True):
    pass


class ContainerFileList(ObjectList[ContainerFileObject], frozen=True):
    pass


Object = TypeVar("Object", bound=HasId)


def cut_page(objects: Sequence[Object], page: PageRequest) -> tuple[list[Object], bool]:
    """Returns a page of objects, which come with the oldest first, and whether more follow.

    Raises InvalidRequest for an unknown `after`.
    """
    ordered = list(objects if page.is_ascending else reversed(objects))
    if page.after is not None:
        ids = [each.id for each in ordered]
        if page.after not in ids:
            raise InvalidRequest(f"is unknown, given {show_value(page.after)}", field="after")
        ordered = ordered[ids.index(page.after) + 1 :]
    return ordered[: page.limit], len(ordered) > page.limit
