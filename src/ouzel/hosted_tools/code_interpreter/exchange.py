"""One request to the driver of a sandbox, and its answer.

A request has a time. After it, or when `interrupt` is called, the driver interrupts the code, as by
Ctrl-C; if the code goes on, the driver kills all its processes. If there is still no answer, the
sandbox itself does not obey, and its owner ends it.
"""

import asyncio
from dataclasses import dataclass, field

from ouzel.hosted_tools.code_interpreter.frames import (
    FrameFault,
    Header,
    read_frame,
    write_frame,
)
from ouzel.hosted_tools.code_interpreter.sandbox_process import SandboxProcess

_GRACE_S = 5.0  # time to answer after an interrupt, and after a kill
_MAX_IMAGES = 8


class NoAnswer(Exception):
    """The driver does not answer."""


@dataclass(frozen=True, slots=True)
class Request:
    operation: str
    payload: bytes = b""
    fields: dict[str, object] = field(default_factory=dict)
    timeout_s: float = 60.0
    max_bytes: int = 1 << 20  # limit of the answer, images apart


@dataclass(slots=True)
class Answer:
    done: Header = field(default_factory=lambda: Header("done"))
    outputs: dict[str, bytearray] = field(default_factory=dict)
    images: list[bytes] = field(default_factory=list)
    interrupted: str | None = None  # the reason, if the request was interrupted

    def text(self, kind: str) -> str:
        return self.outputs.get(kind, bytearray()).decode(errors="replace")


class Exchange:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.start_cpu_s = 0.0  # processor time of the sandbox before it
        self._interrupted: str | None = None
        self._must_stop = asyncio.Event()

    @property
    def is_interrupted(self) -> bool:
        return self._interrupted is not None

    def interrupt(self, reason: str) -> None:
        self._interrupted = self._interrupted or reason
        self._must_stop.set()

    async def run(self, sandbox: SandboxProcess) -> Answer:
        """Raises NoAnswer, FrameFault, and EOFError or ConnectionError if the sandbox ends."""
        request = self.request
        sandbox.writer.write(
            write_frame({"op": request.operation, **request.fields}, request.payload)
        )
        answer = Answer()
        reading = asyncio.create_task(self._read(sandbox, answer))
        stopping = asyncio.create_task(self._must_stop.wait())
        try:
            await asyncio.wait(
                {reading, stopping},
                timeout=request.timeout_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for step in ("interrupt", "kill"):
                if reading.done():
                    break
                self.interrupt(f"it took longer than {request.timeout_s:g} seconds")
                answer.interrupted = self._interrupted
                sandbox.writer.write(write_frame({"op": step}))
                await asyncio.wait({reading}, timeout=_GRACE_S)
            if not reading.done():
                raise NoAnswer
            await reading
        finally:
            reading.cancel()
            stopping.cancel()
            await asyncio.wait({reading, stopping})
        return answer

    async def _read(self, sandbox: SandboxProcess, answer: Answer) -> None:
        num_bytes = 0
        while True:
            header, payload = await read_frame(sandbox.reader)
            match header.kind:
                case "done":
                    answer.done = header
                    return
                case "image":
                    answer.images.append(payload)
                    if len(answer.images) > _MAX_IMAGES:
                        raise FrameFault("too many images")
                case kind:
                    answer.outputs.setdefault(kind, bytearray()).extend(payload)
                    num_bytes += len(payload)
                    if num_bytes > self.request.max_bytes:
                        raise FrameFault("too much output")
