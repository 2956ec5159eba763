"""A container is a sandbox that runs the calls of one client, one after the other.

1.  A call has a time and an amount of processor time; `exchange.py` tells how it ends after them. A
    cancelled call is interrupted in the same way. The next call waits until that is over.
2.  Meanwhile the server measures the sandbox. A container that breaks a limit ends at once.
3.  An ended container does not come back. Its files and variables are lost.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable

from ouzel.hosted_tools.code_interpreter.container_files import ContainerFiles, check_file_name
from ouzel.hosted_tools.code_interpreter.exchange import Answer, Exchange, NoAnswer, Request
from ouzel.hosted_tools.code_interpreter.frames import PIECE_BYTES, FrameFault
from ouzel.hosted_tools.code_interpreter.records import (
    CommandResult,
    ContainerEnded,
    ContainerFile,
    FileRefused,
    PythonResult,
    SandboxLimits,
)
from ouzel.hosted_tools.code_interpreter.sandbox_process import SandboxProcess
from ouzel.hosted_tools.code_interpreter.usage import Usage, measure

logger = logging.getLogger(__name__)

_BUSY_S, _IDLE_S = 0.1, 2.0  # between two measurements
_MAX_IDLE_CPU_S = 5.0  # stopped processes use none, and the driver's work on files is small


class Container:
    def __init__(
        self,
        id: str,
        sandbox: SandboxProcess,
        *,
        name: str,
        key_id: str | None,
        idle_s: float,
        is_automatic: bool,
        on_end: Callable[["Container"], None],
    ) -> None:
        self.id = id
        self.name = name
        self.key_id = key_id  # the container belongs to this API key
        self.idle_s = idle_s  # it ends after this time without a call
        self.is_automatic = is_automatic  # made for the call of a model; no client knows it before
        self.created_at = self.last_active_at = time.time()
        self.has_ended = asyncio.Event()
        self.copied: set[str] = set()  # ids of uploaded files whose copies it has
        self._sandbox = sandbox
        self._on_end = on_end
        self._files = ContainerFiles()
        self._turn = asyncio.Lock()
        self._running: Exchange | None = None
        self._calls: set[asyncio.Task[Answer]] = set()
        self._loop = asyncio.get_running_loop()
        self._active_s = self._loop.time()  # the end of the last call
        self._wakes = asyncio.Event()  # set: a call runs, or the container ends
        self._usage = Usage(0, 0.0, 0, 0)
        self._idle_cpu_s: float | None = None  # processor time when the container became idle
        self._ending: asyncio.Task[None] | None = None
        self._end_reason = ""
        self._watching = asyncio.create_task(self._watch(), name=f"container {id}")

    @property
    def is_ending(self) -> bool:
        return self._ending is not None

    @property
    def is_busy(self) -> bool:
        """Tells whether a call runs or waits."""
        return bool(self._calls)

    @property
    def limits(self) -> SandboxLimits:
        return self._sandbox.plan.limits

    async def run_python(self, code: str) -> PythonResult:
        """Runs code. Raises ContainerEnded."""
        limits = self.limits
        answer = await self._call(
            Request(
                "python",
                code.encode(errors="replace"),
                timeout_s=limits.call_timeout_s,
                max_bytes=limits.output_bytes,
            )
        )
        done = answer.done
        return PythonResult(
            answer.text("output") + _note_dropped(done.dropped),
            tuple(answer.images),
            tuple(self._files.update(done.files, done.changed)),
            error=answer.interrupted or done.error,
            is_state_lost=done.lost,
            is_interrupted=answer.interrupted is not None,
        )

    async def run_command(
        self, command: str, *, timeout_s: float | None = None, output_bytes: int | None = None
    ) -> CommandResult:
        """Runs a command in a shell; a shorter time and a smaller output may be given.

        Raises ContainerEnded.
        """
        limits = self.limits
        most = min(output_bytes or limits.output_bytes, limits.output_bytes)
        answer = await self._call(
            Request(
                "command",
                command.encode(errors="replace"),
                {"limit": most},
                timeout_s=min(timeout_s or limits.call_timeout_s, limits.call_timeout_s),
                max_bytes=2 * most,
            )
        )
        done = answer.done
        changed = self._files.update(done.files, done.changed)
        stderr = answer.text("stderr") + _note_dropped(done.dropped)
        is_interrupted = answer.interrupted is not None
        if done.error is not None:
            stderr += f"\n[The command could not be run: {done.error}.]"
        return CommandResult(
            answer.text("stdout"),
            stderr,
            None if is_interrupted else done.exit,
            files=tuple(changed),
            is_state_lost=done.lost,
        )

    async def list_files(self) -> list[ContainerFile]:
        """Returns the files of the work directory. Raises ContainerEnded."""
        answer = await self._call(Request("list"))
        self._files.update(answer.done.files, ())
        return self._files.list()

    async def find_file(self, file_id: str) -> ContainerFile:
        """Lists the files anew and returns one of them.

        Raises ContainerFileNotFound and ContainerEnded.
        """
        await self.list_files()
        return self._files.find(file_id)

    async def read_file(self, file: ContainerFile) -> AsyncIterator[bytes]:
        """Yields the content of a file. Raises FileRefused and ContainerEnded."""
        start = 0
        while start < self.limits.file_bytes:
            fields = {"path": file.path, "start": start, "size": PIECE_BYTES}
            answer = await self._call(Request("read", fields=fields))
            if answer.done.error is not None:
                raise FileRefused(f"{file.path} cannot be read: {answer.done.error}")
            piece = bytes(answer.outputs.get("data", b""))
            if piece:
                yield piece
            if len(piece) < PIECE_BYTES:
                return
            start += len(piece)

    async def write_file(self, name: str, pieces: AsyncIterator[bytes]) -> ContainerFile:
        """Writes a client's file into the work directory. Raises FileRefused, ContainerEnded."""
        path = check_file_name(name)
        await self._write(path, b"", is_first=True)
        try:
            async for piece in pieces:
                for start in range(0, len(piece), PIECE_BYTES):
                    await self._write(path, piece[start : start + PIECE_BYTES], is_first=False)
        except Exception:
            # Broad: half a file must not stay after any failure of the upload.
            if not self.is_ending:
                await self._call(Request("delete", fields={"path": path}))
            raise
        self._files.note_users(path)
        await self.list_files()
        return self._files.find_path(path)

    async def delete_file(self, file_id: str) -> None:
        """Deletes a file of the work directory.

        Raises ContainerFileNotFound, FileRefused and ContainerEnded.
        """
        file = await self.find_file(file_id)
        answer = await self._call(Request("delete", fields={"path": file.path}))
        if answer.done.error is not None:
            raise FileRefused(f"{file.path} cannot be deleted: {answer.done.error}")

    async def end(self, reason: str = "it was deleted") -> None:
        """Ends the container and all its processes, and waits for their end."""
        self._begin_end(reason)
        assert self._ending is not None
        await asyncio.shield(self._ending)

    def _begin_end(self, reason: str) -> None:
        if self._ending is None:
            logger.info("container %s ended: %s", self.id, reason)
            self._end_reason = reason
            self._ending = asyncio.create_task(self._end())
            self._wakes.set()
            self._sandbox.kill()

    async def _end(self) -> None:
        await asyncio.wait({self._watching})  # it reads the directories that are closed next
        if self._calls:
            await asyncio.wait(self._calls)
        await self._sandbox.end()
        self._on_end(self)
        self.has_ended.set()

    async def _write(self, path: str, piece: bytes, *, is_first: bool) -> None:
        answer = await self._call(Request("write", piece, {"path": path, "first": is_first}))
        if answer.done.error is not None:
            raise FileRefused(f"{path} cannot be written: {answer.done.error}", param="file")

    # Calls

    async def _call(self, request: Request) -> Answer:
        """Runs a request when the earlier ones are over. Raises ContainerEnded."""
        exchange = Exchange(request)
        call = asyncio.create_task(self._run(exchange))
        self._calls.add(call)
        call.add_done_callback(self._forget)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            exchange.interrupt("it was cancelled")
            raise

    def _forget(self, call: asyncio.Task[Answer]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # nobody awaits a call that was cancelled

    async def _run(self, exchange: Exchange) -> Answer:
        async with self._turn:
            if self._ending is not None or exchange.is_interrupted:
                raise self._ended()
            self._running = exchange
            exchange.start_cpu_s = self._usage.cpu_s
            self._idle_cpu_s = None
            self._wakes.set()
            try:
                return await exchange.run(self._sandbox)
            except NoAnswer:
                fault = "its processes did not obey"
            except FrameFault as error:
                fault = f"it broke the protocol: {error}"
            except (EOFError, ConnectionError):
                fault = "its processes ended"
            finally:
                self._running = None
                self._active_s = self._loop.time()
                self.last_active_at = time.time()
                if self._ending is None:
                    self._wakes.clear()
        self._begin_end(fault)
        raise self._ended()

    def _ended(self) -> ContainerEnded:
        return ContainerEnded(f"the container has ended, with its files: {self._end_reason}")

    # Limits

    async def _watch(self) -> None:
        while self._ending is None:
            try:
                async with asyncio.timeout(min(_IDLE_S, self.idle_s)):
                    await self._wakes.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(_BUSY_S)
            if self._ending is None:
                await self._check()

    async def _check(self) -> None:
        running = self._running
        try:
            self._usage = await asyncio.to_thread(
                measure, self._sandbox.directories, self._sandbox.plan.most_memory_bytes
            )
        except OSError:
            self._begin_end("its processes ended")
            return
        broken = self._find_broken_limit(self._usage)
        if broken is not None:
            self._begin_end(broken)
        elif running is not None:
            self._check_call(running)
        elif self._running is None:
            self._check_idle()

    def _find_broken_limit(self, usage: Usage) -> str | None:
        plan, limits = self._sandbox.plan, self.limits
        if usage.memory_bytes > plan.most_memory_bytes:
            return f"it used more than {limits.memory_bytes >> 20} MiB of memory"
        if usage.num_threads > plan.most_threads:
            return f"it had more than {limits.max_processes} processes and threads"
        if usage.num_inodes > limits.max_inodes:
            return f"it had more than {limits.max_inodes} files"
        if usage.num_sockets > limits.max_sockets:
            return f"it had more than {limits.max_sockets} sockets"
        return None

    def _check_call(self, running: Exchange) -> None:
        limit_s = self.limits.cpu_s
        if self._usage.cpu_s - running.start_cpu_s > limit_s:
            running.interrupt(f"it used more than {limit_s:g} seconds of processor time")

    def _check_idle(self) -> None:
        if self._idle_cpu_s is None:
            self._idle_cpu_s = self._usage.cpu_s
        if self._usage.cpu_s - self._idle_cpu_s > _MAX_IDLE_CPU_S:
            self._begin_end("its processes ran between two calls")
        elif self._loop.time() - self._active_s > self.idle_s:
            self._begin_end("it was idle")


def _note_dropped(num_bytes: int) -> str:
    return f"\n[{num_bytes} further bytes of output are left out.]" if num_bytes else ""
