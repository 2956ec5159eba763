"""Runs shell commands in a container, or lets the client run them: entries of type `shell`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.code_interpreter.records import (
    WORK_DIRECTORY,
    CommandResult,
    ContainerFile,
)
from ouzel.responses.hosted.citations import write_without_markers
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
from ouzel.responses.hosted.shell import (
    SHELL,
    ContainerReference,
    Exited,
    LocalEnvironment,
    ShellAction,
    ShellCall,
    ShellCallOutput,
    ShellOutput,
    TimedOut,
    write_outputs,
)
from ouzel.responses.output_items import new_id
from ouzel.store.base import Store
from ouzel.wire.offered_tools import ClientName, OfferedTool

_IN_CONTAINER = (
    "Runs shell commands one after the other in a sandbox without a network, and returns their "
    f"outputs. The current directory is {WORK_DIRECTORY}; the user can download its files."
)
_AT_CLIENT = "Runs shell commands one after the other on the user's computer."
_MAX_COMMANDS = 32
_NO_SANDBOX = "must be local: this server runs no commands; the operator turns it on with --sandbox"


class ContainerAuto(msgspec.Struct, frozen=True, tag_field="type", tag="container_auto"):
    file_ids: FileIds | None = None
    memory_limit: str | None = None
    network_policy: JsonObject | None = None
    skills: list[JsonObject] | None = None


class LocalShell(msgspec.Struct, frozen=True, tag_field="type", tag="local"):
    skills: list[JsonObject] | None = None


class ShellEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `tools` with the type `shell`; without an environment it is the client's."""

    type: Literal["shell"]
    environment: ContainerAuto | ContainerReference | LocalShell | None = None


class ShellKind:
    types = frozenset({"shell"})

    def __init__(self, containers: Containers | None, store: Store | None) -> None:
        """`containers` is None if the sandbox is off: then only the client runs commands."""
        self._containers = containers
        self._store = store

    def check(self, entry: JsonObject, path: str) -> None:
        environment = decode_entry(entry, ShellEntry, path).environment
        if isinstance(environment, LocalShell | ContainerAuto) and environment.skills:
            raise InvalidRequest(
                "must be empty: this server has no skills", field=f"{path}.environment.skills"
            )
        if isinstance(environment, LocalShell | None):
            return
        if self._containers is None:
            raise InvalidRequest(_NO_SANDBOX, field=f"{path}.environment.type")
        if isinstance(environment, ContainerAuto):
            self._read_memory(environment, path)
            check_network_policy(environment.network_policy, f"{path}.environment.network_policy")

    def show(self, entry: JsonObject) -> JsonObject:
        return entry

    def keep(self, entry: JsonObject) -> JsonObject:
        return entry

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> "ShellTool":
        environment = decode_entry(entry, ShellEntry, path).environment
        containers = self._containers
        if isinstance(environment, LocalShell | None) or containers is None:
            return ShellTool(None, path)
        if isinstance(environment, ContainerReference):
            containers.find(environment.container_id, context.key_id)
            container = RequestContainer(
                containers,
                self._store,
                context.key_id,
                container_id=environment.container_id,
                is_new=False,
            )
            return ShellTool(container, path)
        files = environment.file_ids or []
        await check_uploads(self._store, context.key_id, files, f"{path}.environment.file_ids")
        container = RequestContainer(
            containers,
            self._store,
            context.key_id,
            container_id=find_earlier(containers, context),
            is_new=True,
            memory_bytes=self._read_memory(environment, path),
            file_ids=files,
        )
        return ShellTool(container, path)

    async def close(self) -> None:
        """Keeps the containers, which outlive this object and which the server closes."""

    def _read_memory(self, environment: ContainerAuto, path: str) -> int:
        assert self._containers is not None
        most = self._containers.plan.limits.memory_bytes
        field = f"{path}.environment.memory_limit"
        return read_memory_limit(environment.memory_limit, most, field)


class _Arguments(msgspec.Struct, frozen=True):
    commands: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=50_000)]],
        Meta(min_length=1, max_length=_MAX_COMMANDS),
    ]
    timeout_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    max_output_length: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None


_ARGUMENTS = msgspec.json.Decoder(_Arguments)


class ShellTool:
    first_items: Sequence[AnyHostedItem] = ()
    first_calls: Sequence[AnyHostedItem] = ()

    def __init__(self, container: RequestContainer | None, path: str) -> None:
        """`container` is None if the client runs the commands."""
        self._container = container
        offered = OfferedTool(
            ClientName(SHELL),
            path,
            _AT_CLIENT if container is None else _IN_CONTAINER,
            {
                "type": "object",
                "properties": {
                    "commands": {"type": "array", "items": {"type": "string"}},
                    "timeout_ms": {"type": "integer"},
                },
                "required": ["commands"],
            },
            hosted_type="shell",
        )
        self.functions = [HostedFunction(offered, is_repeatable=False)]

    def begin_call(self, call: ModelCall) -> AnyHostedItem:
        container = self._container
        item = ShellCall(
            id=new_id(ShellCall.id_prefix),
            call_id=new_id("call"),
            action=ShellAction([]),
            environment=(
                LocalEnvironment() if container is None else ContainerReference(container.id)
            ),
            status="completed" if container is None else "in_progress",
        )
        try:
            given = _ARGUMENTS.decode(call.arguments or "{}")
        except msgspec.MsgspecError as error:
            return item.fail(f"The arguments cannot be read: {error}")
        action = ShellAction(given.commands, given.timeout_ms, given.max_output_length)
        return replace(item, action=action)

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        assert isinstance(item, ShellCall) and self._container is not None
        assert isinstance(item.environment, ContainerReference)
        container = await self._container.open(item.environment.container_id)
        action = item.action
        results = [
            await container.run_command(
                command,
                timeout_s=None if action.timeout_ms is None else action.timeout_ms / 1000,
                output_bytes=action.max_output_length,
            )
            for command in action.commands
        ]
        files: dict[str, ContainerFile] = {}
        for result in results:
            files |= {file.path: file for file in result.files}
        named, sources = cite_files(container, list(files.values()), numbers)
        outputs = [_show(result) for result in results]
        written = write_without_markers(write_outputs(outputs))
        text = "\n\n".join(part for part in (written, named) if part)
        further = ShellCallOutput(
            id=new_id(ShellCallOutput.id_prefix),
            call_id=item.call_id,
            output=outputs,
            max_output_length=action.max_output_length,
        )
        ended = replace(item, status="completed", output=text, sources=sources)
        return CallResult(ended, (further,))

    async def close(self) -> None:
        pass


def _show(result: CommandResult) -> ShellOutput:
    code = result.exit_code
    return ShellOutput(
        TimedOut() if code is None else Exited(code), stdout=result.stdout, stderr=result.stderr
    )
