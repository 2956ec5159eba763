"""Runs Python code in a container: entries of `tools` with the type `code_interpreter`."""

import base64
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.code_interpreter.records import WORK_DIRECTORY, PythonResult
from ouzel.responses.hosted.citations import write_without_markers
from ouzel.responses.hosted.code_interpreter import (
    PYTHON,
    CodeImage,
    CodeInterpreterCall,
    CodeLogs,
)
from ouzel.responses.hosted.entries import decode_entry
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import (
    CallResult,
    HostedFunction,
    JsonObject,
    ModelCall,
    OpeningContext,
)
from ouzel.responses.hosted.request_container import (
    FileIds,
    RequestContainer,
    check_network_policy,
    check_uploads,
    cite_files,
    find_earlier,
    read_memory_limit,
)
from ouzel.responses.output_items import new_id
from ouzel.store.base import Store
from ouzel.wire.offered_tools import ClientName, OfferedTool

_OUTPUTS = "code_interpreter_call.outputs"
_MAX_IMAGE_BYTES = 4 * 2**20  # limit of all images of one call
_DESCRIPTION = (
    "Runs Python code in a sandbox without a network, like a cell of a notebook: variables stay "
    "until the next call, the value of the last expression and everything that is printed is "
    "returned, and figures of matplotlib are shown to the user. Files are in the current "
    f"directory, {WORK_DIRECTORY}; the user can download files that are written there."
)


class AutoContainer(msgspec.Struct, frozen=True):
    type: Literal["auto"]
    file_ids: FileIds | None = None
    memory_limit: str | None = None
    network_policy: JsonObject | None = None


class CodeInterpreterEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `tools` with the type `code_interpreter`."""

    type: Literal["code_interpreter"]
    container: str | AutoContainer


class CodeInterpreterKind:
    types = frozenset({"code_interpreter"})

    def __init__(self, containers: Containers, store: Store | None) -> None:
        self._containers = containers
        self._store = store

    def check(self, entry: JsonObject, path: str) -> None:
        decoded = decode_entry(entry, CodeInterpreterEntry, path)
        if isinstance(auto := decoded.container, AutoContainer):
            self._read_memory(auto, path)
            check_network_policy(auto.network_policy, f"{path}.container.network_policy")

    def show(self, entry: JsonObject) -> JsonObject:
        return entry

    def keep(self, entry: JsonObject) -> JsonObject:
        return entry

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> "CodeTool":
        named = decode_entry(entry, CodeInterpreterEntry, path).container
        if isinstance(named, AutoContainer):
            files = named.file_ids or []
            await check_uploads(self._store, context.key_id, files, f"{path}.container.file_ids")
            container = RequestContainer(
                self._containers,
                self._store,
                context.key_id,
                container_id=find_earlier(self._containers, context),
                is_new=True,
                memory_bytes=self._read_memory(named, path),
                file_ids=files,
            )
        else:
            self._containers.find(named, context.key_id)
            container = RequestContainer(
                self._containers, self._store, context.key_id, container_id=named, is_new=False
            )
        return CodeTool(container, path, shows_outputs=_OUTPUTS in context.include)

    async def close(self) -> None:
        """Keeps the containers, which outlive this object and which the server closes."""

    def _read_memory(self, auto: AutoContainer, path: str) -> int:
        most = self._containers.plan.limits.memory_bytes
        return read_memory_limit(auto.memory_limit, most, f"{path}.container.memory_limit")


class _Arguments(msgspec.Struct, frozen=True):
    code: Annotated[str, Meta(min_length=1, max_length=200_000)]


_ARGUMENTS = msgspec.json.Decoder(_Arguments)


class CodeTool:
    first_items: Sequence[AnyHostedItem] = ()
    first_calls: Sequence[AnyHostedItem] = ()

    def __init__(self, container: RequestContainer, path: str, *, shows_outputs: bool) -> None:
        self._container = container
        self._shows_outputs = shows_outputs
        offered = OfferedTool(
            ClientName(PYTHON),
            path,
            _DESCRIPTION,
            {
                "type": "object",
                "properties": {"code": {"type": "string"}},
                "required": ["code"],
            },
            hosted_type="code_interpreter",
        )
        self.functions = [HostedFunction(offered, is_repeatable=False)]

    def begin_call(self, call: ModelCall) -> AnyHostedItem:
        item = CodeInterpreterCall(
            id=new_id(CodeInterpreterCall.id_prefix),
            status="in_progress",
            code=None,
            container_id=self._container.id,
        )
        try:
            return replace(item, code=_ARGUMENTS.decode(call.arguments or "{}").code)
        except msgspec.MsgspecError as error:
            return item.fail(f"The arguments cannot be read: {error}")

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        assert isinstance(item, CodeInterpreterCall) and item.code is not None
        container = await self._container.open(item.container_id)
        result = await container.run_python(item.code)
        files, sources = cite_files(container, result.files, numbers)
        images = _list_images(result)
        return CallResult(
            replace(
                item,
                status="incomplete" if result.is_interrupted else "completed",
                output=_write(result, self._describe(images), files),
                sources=sources,
                outputs=[CodeLogs(result.logs), *images] if self._shows_outputs else None,
            )
        )

    async def close(self) -> None:
        pass

    def _describe(self, images: Sequence[CodeImage]) -> str:
        if not images:
            return ""
        if self._shows_outputs:
            return f"[{len(images)} images were shown to the user.]"
        return f"[{len(images)} images were drawn. Save them as files to show them to the user.]"


def _list_images(result: PythonResult) -> list[CodeImage]:
    """Returns the images as data URLs; images beyond the limit are left out."""
    images: list[CodeImage] = []
    num_left = _MAX_IMAGE_BYTES
    for image in result.images:
        if len(image) <= num_left:
            num_left -= len(image)
            images.append(CodeImage(f"data:image/png;base64,{base64.b64encode(image).decode()}"))
    return images


def _write(result: PythonResult, images: str, files: str) -> str:
    """Writes a result for the model."""
    parts = [result.logs.strip()]
    if result.error is not None and result.error not in result.logs:
        parts.append(f"[{result.error}]")
    parts = [write_without_markers(part) for part in parts]  # the code may read a stranger's data
    if result.is_state_lost:
        parts.append("[All variables are lost: Python was started again. The files are there.]")
    parts += [images, files]
    return "\n".join(part for part in parts if part) or "[The code ran, without any output.]"
