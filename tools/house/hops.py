"""Counts how often a request changes folders between the arrival of its body and its first chunk.

    uv run python -m tools.house.hops [--request chat|responses] [--quiet]

The app runs in this process, on the fake engine and with a store, and answers a request under
`sys.setprofile`. The count follows a reader of the calls: each call into another folder is a hop,
and so is the return for the next call.

Rules
1. Only functions of the package count. If the code of a library lies between two of them, the first
   counts as the caller of the second. A pair of caller and callee is read once. Lambdas and
   comprehensions belong to the function in which they are written.
2. A function's folder is the directory of its file. Files directly in the package, its options and
   its metrics are vocabulary that all folders share: calls from them or to them do not count.
3. Each task and each thread is read by itself, for no call leads from one to another. So the count
   does not depend on how they take turns.
4. The calls are read in order, each from its caller into its callee. A hop is a call into another
   folder, or the way from there to the caller of the next call; ways back after the last call into
   another folder do not count.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Scope

import ouzel
from ouzel.api.app import create_app
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.options.options import read_options
from ouzel.serve.open_models import open_model
from ouzel.serve.open_store import open_configured_store
from ouzel.serve.served_model import load_served_model

PACKAGE = Path(ouzel.__file__).parent
ENGINE = EngineSpec(factory="ouzel.backends.fake:create_engine", options={"step_s": 0.1})
# Folders that are read as files directly in the package.
VOCABULARY = ("config", "observability", "types")
# Enough steps that the first token leaves before the last one is made, also on a busy machine.
MAX_TOKENS = 16

REQUESTS: dict[str, tuple[str, dict[str, object]]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": "Hello"}],
            "max_tokens": MAX_TOKENS,
            "stream": True,
        },
    ),
    "responses": (
        "/v1/responses",
        {"input": "Hello", "max_output_tokens": MAX_TOKENS, "stream": True, "store": True},
    ),
}


class Function(NamedTuple):
    path: str  # below the package
    name: str

    @property
    def folder(self) -> str:
        """The empty text stands for the package itself."""
        folder = self.path.rpartition("/")[0]
        return "" if folder in VOCABULARY else folder

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


class Hop(NamedTuple):
    origin: Function
    target: Function
    is_call: bool

    def __str__(self) -> str:
        return (
            f"{self.origin} -> {self.target}" if self.is_call else f"    and back to {self.target}"
        )


class Call(NamedTuple):
    caller: Function
    callee: Function


class Recorder:
    """This profile function records calls while `is_on` is set."""

    def __init__(self) -> None:
        self.is_on = False
        self._calls: dict[Call, str] = {}  # the value: the task or thread that first made the call
        self._functions: dict[CodeType, Function | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if not self.is_on or event != "call" or _is_resumed(frame):
            return
        callee = self._function(frame.f_code)
        if callee is None or _is_anonymous(frame.f_code):
            return
        caller = self._caller(frame)
        if caller is not None:
            self._calls.setdefault(Call(caller, callee), _running())

    @property
    def calls(self) -> list[Call]:
        """All pairs of caller and callee, in the order of their first calls."""
        return list(self._calls)

    def hops(self) -> dict[str, list[Hop]]:
        """Returns the hops of each task and thread that has some."""
        calls: dict[str, list[Call]] = {}
        for call, where in self._calls.items():
            calls.setdefault(where, []).append(call)
        return {where: hops for where, made in calls.items() if (hops := read_hops(made))}

    def _caller(self, frame: FrameType) -> Function | None:
        """Returns the nearest function of the package below `frame` on its stack."""
        below = frame.f_back
        while below is not None and (caller := self._function(below.f_code)) is None:
            below = below.f_back
        return None if below is None else caller

    def _function(self, code: CodeType) -> Function | None:
        """Returns None for code outside the package."""
        if code not in self._functions:
            path = Path(code.co_filename)
            name = code.co_qualname.partition(".<locals>.<")[0]
            is_ours = path.is_relative_to(PACKAGE)
            self._functions[code] = (
                Function(path.relative_to(PACKAGE).as_posix(), name) if is_ours else None
            )
        return self._functions[code]


def _is_resumed(frame: FrameType) -> bool:
    """Tells whether a generator or coroutine goes on, rather than begins.

    A call begins or goes on with the instruction RESUME; the two low bits of its argument are 0 at
    the beginning.
    """
    return frame.f_code.co_code[frame.f_lasti + 1] & 3 != 0


def _is_anonymous(code: CodeType) -> bool:
    return code.co_name.startswith("<")  # <lambda>, <genexpr>, <module>, ...


def _running() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # this thread has no event loop
        return f"thread {threading.current_thread().name}"
    return (
        "callbacks"
        if task is None
        else f"task {getattr(task.get_coro(), '__qualname__', task.get_name())}"
    )


def read_hops(calls: Iterable[Call]) -> list[Hop]:
    """Reads the calls of one task or thread (rules 2 and 4)."""
    hops: list[Hop] = []
    here: Function | None = None
    for call in calls:
        if "" in (call.caller.folder, call.callee.folder):
            continue
        if here is not None and here.folder != call.caller.folder:
            hops.append(Hop(here, call.caller, is_call=False))
        if call.caller.folder != call.callee.folder:
            hops.append(Hop(*call, is_call=True))
        here = call.callee
    while hops and not hops[-1].is_call:
        hops.pop()
    return hops


def record(request: str) -> dict[str, list[Hop]]:
    """Runs one of `REQUESTS` and returns its hops by task and thread."""
    recorder = Recorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        asyncio.run(_serve(*REQUESTS[request], recorder))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return recorder.hops()


def longest_chain(recorded: dict[str, list[Hop]]) -> int:
    """Counts the hops of the task or thread that has most of them."""
    return max(map(len, recorded.values()))


async def _serve(path: str, body: dict[str, object], recorder: Recorder) -> None:
    """Answers the request twice and records the second answer, without work that is done once."""
    engine = EngineClient(ENGINE, in_thread=True)
    with tempfile.TemporaryDirectory() as data_dir:
        options = read_options({"data_dir": data_dir}, {})
        local = open_model(options.all_models[0]).local
        model = await load_served_model(options, local, engine, asyncio.create_task(engine.start()))
        store = await open_configured_store(options.store)
        app = create_app(model, options.limits, options.server, store)
        encoded = json.dumps({"model": local.name, **body}).encode()
        await _answer(app, path, encoded, Recorder())
        await asyncio.create_task(_answer(app, path, encoded, recorder))
        await engine.close()
        if store is not None:
            await store.close()


async def _answer(app: ASGIApp, path: str, body: bytes, recorder: Recorder) -> None:
    """Sends one request, and records from its body to the first piece of the answer's body."""
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    is_answered = asyncio.Event()

    async def receive() -> Message:
        if not incoming:
            await is_answered.wait()
            return {"type": "http.disconnect"}
        recorder.is_on = True
        return incoming.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200, f"{path} was answered with {message['status']}"
            return
        recorder.is_on = False
        if not message.get("more_body"):
            is_answered.set()

    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-length", str(len(body)).encode())],
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--request", choices=tuple(REQUESTS), help="One of them only.")
    parser.add_argument("--quiet", action="store_true", help="Only the counts.")
    arguments = parser.parse_args()
    for request in (arguments.request,) if arguments.request else REQUESTS:
        recorded = record(request)
        num_hops = sum(len(hops) for hops in recorded.values())
        print(f"{request}: {longest_chain(recorded)} hops in the longest chain, {num_hops} in all")
        if not arguments.quiet:
            _print_hops(recorded)


def _print_hops(recorded: dict[str, list[Hop]]) -> None:
    for where, hops in recorded.items():
        print(f"  {where}: {len(hops)}")
        for number, hop in enumerate(hops, start=1):
            print(f"  {number:4} {hop}")


if __name__ == "__main__":
    main()
