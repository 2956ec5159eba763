"""Proves that sandboxes hold on this machine, before the first one is offered to clients.

A program inside tries to reach things that the server has put outside: a listening port, a socket
with an abstract name, a file, a process. It also tells its rights. Every fact must be as expected.

Programs in gVisor have a kernel of their own, and no filter; the filter of gVisor itself is seen
from outside.
"""

import os
import secrets
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ouzel.hosted_tools.code_interpreter.exchange import Exchange, NoAnswer, Request
from ouzel.hosted_tools.code_interpreter.frames import FrameFault
from ouzel.hosted_tools.code_interpreter.records import SandboxPlan, SandboxUnavailable
from ouzel.hosted_tools.code_interpreter.sandbox_process import SandboxProcess
from ouzel.hosted_tools.code_interpreter.syscall_filter import make_filter
from ouzel.hosted_tools.code_interpreter.system_inside import write_environment
from ouzel.hosted_tools.code_interpreter.usage import count_unfiltered

_CHECK_S = 20.0
_PROGRAM = Path(__file__).parent / "inside" / "check.py"
_NUM_STARTERS = 2  # bubblewrap and the runsc that has started gVisor run no code of models
_CLOSED = {
    "bubblewrap": ["/x", "/usr/x", "/proc/x", "/dev/x", "/proc/self/oom_score_adj"],
    "gvisor": ["/x", "/usr/x", "/proc/x", "/dev/x", "/sys/x", "/etc/passwd"],
}
_MEANINGS = {
    "no_port": "it reaches a port of this machine",
    "no_socket": "it reaches a socket of this machine",
    "no_file": "it sees a file of this machine",
    "no_process": "it sees processes of this machine",
    "no_interface": "it has a network interface",
    "no_capability": "it has capabilities",
    "no_new_rights": "its processes can get further rights",
    "system_call_filter": "no filter of system calls is active",
    "own_kernel": "it calls the kernel of this machine",
    "read_only": "it can write outside of its directory",
    "writable": "it cannot write into its directory",
    "empty_environment": "it sees the environment of the server",
}


async def check_sandbox(plan: SandboxPlan) -> list[str]:
    """Returns the names of the limits that hold. Raises SandboxUnavailable."""
    sandbox = await SandboxProcess.start(plan, f"check-{secrets.token_hex(4)}")
    try:
        with ExitStack() as stack:
            given = _put_outside(stack)
            given["closed"] = _CLOSED[plan.tool]
            text = msgspec.json.encode(given).decode()
            program = f"{_PROGRAM.read_text()}\nprint_facts({text!r})"
            exchange = Exchange(Request("python", program.encode(), timeout_s=_CHECK_S))
            try:
                answer = await exchange.run(sandbox)
            except (NoAnswer, FrameFault, EOFError, ConnectionError) as error:
                raise SandboxUnavailable("the check of the sandbox ended early") from error
        try:
            facts = msgspec.json.decode(answer.text("output"), type=dict[str, bool])
        except msgspec.MsgspecError:
            complaint = answer.text("output")[-500:] or answer.done.error
            raise SandboxUnavailable(f"the check of the sandbox failed: {complaint}") from None
        held = sandbox.facts.held
        if plan.tool == "gvisor":
            num_unfiltered = count_unfiltered(sandbox.directories[0])
            facts["system_call_filter"] = num_unfiltered <= _NUM_STARTERS
        else:
            facts["own_kernel"] = True  # it shares the kernel of this machine
            if make_filter() is None:  # there is none for this processor; the log says so
                facts["system_call_filter"] = True
    finally:
        await sandbox.end()
    broken = [meaning for name, meaning in _MEANINGS.items() if not facts.get(name)]
    if broken:
        raise SandboxUnavailable(f"the sandbox does not hold: {'; '.join(broken)}")
    return held


def _put_outside(stack: ExitStack) -> dict[str, object]:
    """Makes things outside that the sandbox must not reach."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    name = f"ouzel-{secrets.token_hex(8)}"
    abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    abstract.bind(f"\0{name}")
    abstract.listen()
    # Not below /tmp, where the sandbox has a directory of its own in any case.
    directory = stack.enter_context(tempfile.TemporaryDirectory(dir=_find_place()))
    Path(directory).chmod(0o755)
    file = Path(directory) / "outside"
    file.touch()
    return {
        "port": listener.getsockname()[1],
        "name": name,
        "file": str(file),
        "kernel": os.uname().version,
        "variables": [*write_environment(), "PWD", "LC_CTYPE"],
    }


def _find_place() -> str | None:
    for place in ("/var/tmp", str(Path.home())):
        if os.access(place, os.W_OK):
            return place
    return None
