"""Hostile code inside a sandbox reaches nothing outside, and ends with its container.

The list follows the known escapes from containers, and the errors that bubblewrap itself had:
CVE-2017-5226 (keys put into the terminal), CVE-2016-8659 and CVE-2020-5291 (rights of a setuid
bubblewrap), CVE-2019-12439 (a directory below /tmp that others can guess), CVE-2024-42472 (mounts
through a link of hostile code).
"""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ouzel.hosted_tools.code_interpreter.bubblewrap import find_bubblewrap
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.records import (
    ContainerEnded,
    FileRefused,
    SandboxUnavailable,
)
from tests.hosted_tools.code_interpreter.sandboxes import (
    LIMITS,
    Tool,
    opened_container,
    opened_containers,
    pieces,
    read_logs,
    read_shell,
)

TRY = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(act):
    try:
        return repr(act())
    except OSError as error:
        return errno.errorcode[error.errno]
def syscall(number, *arguments):
    ctypes.set_errno(0)
    if libc.syscall(number, *map(ctypes.c_long, arguments)) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "allowed"
"""
# gVisor has a kernel of its own, where these calls and files are harmless.
ON_THE_KERNEL_OF_THE_HOST = pytest.mark.parametrize("sandbox", ["bubblewrap"], indirect=True)
ON_X86_64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")


@pytest.fixture
async def hostile(container: Container) -> Container:
    await read_logs(container, TRY)
    return container


@pytest.fixture
def secret() -> Iterator[Path]:
    """Yields a file of the host, outside of /tmp, that everybody may read."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        file = Path(directory) / "secret"
        file.write_text("the secret")
        yield file


# The file system


async def test_the_files_of_the_host_are_not_there(
    hostile: Container, secret: Path, sandbox: Tool
) -> None:
    ways = [str(secret), f"/proc/1/root{secret}", f"/proc/self/root{secret}"]
    ways += [f"/proc/1/cwd{secret}", f"/../../..{secret}", f"/mnt/data/../../../..{secret}"]
    for way in ways:
        assert await read_logs(hostile, f"attempt(lambda: open({way!r}).read())") in (
            "'ENOENT'",
            "'EACCES'",
        )
    hidden = ["/root", "/home", "/var", "/etc/shadow", "/etc/ssh", "/boot", "/opt"]
    hidden += ["/sys"] if sandbox == "bubblewrap" else ["/bundle", "/runsc", "/system"]
    for path in hidden:
        assert await read_logs(hostile, f"os.path.exists({path!r})") == "False", path
    assert await read_shell(hostile, "find / -name secret -path '*tmp*' 2>/dev/null") == ""


async def test_nothing_outside_of_the_work_directory_can_be_written(
    hostile: Container, sandbox: Tool
) -> None:
    found = "find / -xdev -writable -not -type l -not -path '/proc/*' 2>/dev/null"
    own = ("/mnt/data", "/tmp", "/dev/shm")
    places = [place for place in (await read_shell(hostile, found)).split() if place not in own]
    for place in [*places, "/usr", "/etc/passwd", "/proc/sys/kernel/core_pattern", "/run/ouzel"]:
        code = f"attempt(lambda: open({place!r} + ('/x' if os.path.isdir({place!r}) else ''), 'a'))"
        assert "E" in await read_logs(hostile, code), place
    assert await read_logs(hostile, "attempt(lambda: os.chmod('/etc/passwd', 0o777))") in (
        "'EROFS'",
        "'EPERM'",
    )
    for name in ("oom_score_adj", "mem", "uid_map", "setgroups"):
        code = f"attempt(lambda: os.open('/proc/self/{name}', os.O_WRONLY))"
        if sandbox == "bubblewrap":
            assert await read_logs(hostile, code) == "'EROFS'"


@ON_THE_KERNEL_OF_THE_HOST
async def test_devices_are_harmless_and_cannot_be_made(hostile: Container) -> None:
    listed = [
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "ptmx",
        "pts",
        "shm",
        "fd",
        "stdin",
        "stdout",
        "stderr",
        "core",
    ]
    names = set((await read_shell(hostile, "ls /dev")).split())
    assert names <= {*listed}
    code = "attempt(lambda: os.mknod('/mnt/data/disk', 0o60666, os.makedev(254, 0)))"
    assert await read_logs(hostile, code) == "'EPERM'"
    assert await read_logs(hostile, "attempt(lambda: open('/dev/core', 'rb').read(1))") in (
        "'EACCES'",
        "'EPERM'",
        "'ENOENT'",
    )
    # TIOCSTI (CVE-2017-5226): there is no terminal, and the call is refused for any other.
    assert await read_logs(hostile, "attempt(lambda: os.open('/dev/tty', os.O_RDWR))") == "'ENXIO'"
    typing = (
        "import fcntl, pty\nends = pty.openpty()\nattempt(lambda: fcntl.ioctl(ends[1], {}, b'x'))"
    )
    assert await read_logs(hostile, typing.format(0x5412)) == "'EPERM'"
    assert await read_logs(hostile, typing.format(0x541C)) == "'EPERM'"


# Rights and calls of the kernel


@ON_THE_KERNEL_OF_THE_HOST
async def test_there_are_no_rights_and_none_can_be_had(hostile: Container) -> None:
    status = await read_logs(hostile, "print(open('/proc/self/status').read())")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{name}:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert await read_logs(hostile, "attempt(lambda: os.setuid(0))") in ("'EPERM'", "'EINVAL'")
    assert await read_logs(hostile, "attempt(lambda: os.chroot('/mnt/data'))") == "'EPERM'"
    setuid = "cp /usr/bin/id me; chmod 4755 me; ./me -u; find / -xdev -perm -4000 -exec {} \\\\;"
    assert "uid=0" not in await read_shell(hostile, setuid)
    mounts = await read_shell(hostile, "cat /proc/self/mounts")
    assert all("nosuid" in line for line in mounts.splitlines())


@ON_THE_KERNEL_OF_THE_HOST
@ON_X86_64
@pytest.mark.parametrize(
    ("number", "arguments", "error"),
    [
        (101, (16, 1, 0, 0), "EPERM"),  # ptrace(PTRACE_ATTACH, 1)
        (310, (1, 0, 0, 0, 0, 0), "EPERM"),  # process_vm_readv
        (165, (0, 0, 0, 0, 0), "EPERM"),  # mount
        (155, (0, 0), "EPERM"),  # pivot_root
        (272, (0x10000000,), "EPERM"),  # unshare(CLONE_NEWUSER)
        (308, (0, 0), "EPERM"),  # setns
        (56, (0x10000011, 0, 0, 0, 0), "EPERM"),  # clone(CLONE_NEWUSER | SIGCHLD)
        (435, (0, 0), "ENOSYS"),  # clone3
        (248, (0, 0, 0, 0, 0), "EPERM"),  # add_key
        (249, (0, 0, 0, 0), "EPERM"),  # request_key
        (250, (0, -3), "EPERM"),  # keyctl(KEYCTL_GET_KEYRING_ID, the session's)
        (321, (0, 0, 0), "EPERM"),  # bpf
        (298, (0, 0, 0, 0, 0), "EPERM"),  # perf_event_open
        (323, (0,), "EPERM"),  # userfaultfd
        (425, (1, 0), "ENOSYS"),  # io_uring_setup
        (319, (0, 0), "ENOSYS"),  # memfd_create
        (29, (0, 4096, 0o1600), "ENOSYS"),  # shmget
        (428, (0, 0, 0), "EPERM"),  # open_tree
        (304, (0, 0, 0), "EPERM"),  # open_by_handle_at
        (438, (0, 0, 0), "EPERM"),  # pidfd_getfd
        (9999, (), "ENOSYS"),  # a call of a later kernel
    ],
)
async def test_dangerous_calls_of_the_kernel_are_refused(
    hostile: Container, number: int, arguments: tuple[int, ...], error: str
) -> None:
    assert await read_logs(hostile, f"syscall{(number, *arguments)}") == f"'{error}'"


@ON_THE_KERNEL_OF_THE_HOST
@ON_X86_64
async def test_other_ways_to_call_the_kernel_end_the_process(hostile: Container) -> None:
    # The numbers of the x32 interface have one more bit.
    ended = await hostile.run_python("libc.syscall(ctypes.c_long(0x40000000 + 101))")
    assert ended.is_state_lost and "SIGSYS" in (ended.error or "")


@ON_THE_KERNEL_OF_THE_HOST
async def test_the_kernel_tells_nothing_about_keys_and_the_machine(hostile: Container) -> None:
    hidden = ["cmdline", "config.gz", "interrupts", "iomem", "kallsyms", "keys", "key-users"]
    for path in [f"/proc/{name}" for name in hidden]:
        code = f"attempt(lambda: open({path!r}).read())"
        assert await read_logs(hostile, code) in ("'EACCES'", "'ENOENT'", "''")


# The network, and other processes


async def test_there_is_no_network(hostile: Container, sandbox: Tool) -> None:
    name = f"\0ouzel-{secrets.token_hex(8)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
    ):
        abstract.bind(name)
        abstract.listen()
        port = listener.getsockname()[1]
        connect = f"attempt(lambda: socket.create_connection(('127.0.0.1', {port}), 10))"
        assert await read_logs(hostile, connect) in ("'ECONNREFUSED'", "'ENETUNREACH'")
        connect = f"attempt(lambda: socket.socket(socket.AF_UNIX).connect({name!r}))"
        assert await read_logs(hostile, connect) == "'ECONNREFUSED'"
    away = "attempt(lambda: socket.create_connection(('1.1.1.1', 53), 10))"
    assert await read_logs(hostile, away) in ("'ENETUNREACH'", "'EHOSTUNREACH'")
    if sandbox == "gvisor":
        return
    # netlink, packets, the kernel's cryptography, and the hypervisor, whose sockets no
    # namespace separates
    for family in (16, 17, 38, 40):
        code = f"attempt(lambda: socket.socket({family}, socket.SOCK_RAW))"
        assert await read_logs(hostile, code) == "'EAFNOSUPPORT'"


@ON_THE_KERNEL_OF_THE_HOST
async def test_processes_of_the_host_cannot_be_named(hostile: Container) -> None:
    pids = "sorted(int(name) for name in os.listdir('/proc') if name.isdecimal())"
    assert len((await read_logs(hostile, pids)).split(",")) <= 4
    for pid in (os.getpid(), os.getppid()):
        if pid > 100:  # smaller numbers may exist inside
            code = f"attempt(lambda: os.kill({pid}, 9))"
            assert await read_logs(hostile, code) == "'ESRCH'"
    environment = "attempt(lambda: open('/proc/1/environ').read())"
    assert "PATH" not in await read_logs(hostile, environment)
    os.environ["OUZEL_TEST_SECRET"] = "hunter2"
    try:
        assert "hunter2" not in await read_shell(hostile, "env; cat /proc/*/environ 2>/dev/null")
    finally:
        del os.environ["OUZEL_TEST_SECRET"]


async def test_killing_everything_inside_ends_the_container_only(sandbox: Tool) -> None:
    async with opened_containers() as containers:
        attacked, other = await containers.create("a"), await containers.create("b")
        with pytest.raises(ContainerEnded, match="processes ended"):
            await attacked.run_command("kill -9 -1; kill -9 1")
        await attacked.has_ended.wait()
        assert await read_logs(other, "1 + 1") == "2"


async def test_a_driver_that_is_stopped_ends_the_container(sandbox: Tool) -> None:
    async with opened_container(replace(LIMITS, call_timeout_s=0.5)) as container:
        with pytest.raises(ContainerEnded, match="did not obey"):
            await container.run_python("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)")


# The connection to the server


FORGE = """
import json, os, socket, stat
for fd in range(3, 256):
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            continue
    except OSError:
        continue
    connection = socket.socket(fileno=os.dup(fd))
    connection.sendall({text!r})
"""


@pytest.mark.parametrize(
    "text",
    [
        b"not JSON\n",
        b"[" * 100_000 + b"\n",
        b'{"call": 1}\n[]\nnull\n',
        b'{"call": 1, "image": 5}\n',
        b'{"call": 1, "image": "%%%"}\n',
        b'{"call": 1, "error": {"a": [1]}}\n',
        b"x" * 100_000,
    ],
)
async def test_forged_messages_harm_their_container_only(container: Container, text: bytes) -> None:
    result = await container.run_python(FORGE.format(text=text))
    assert result.logs == "" or "Traceback" in result.logs
    assert await read_shell(container, "echo still there") == "still there"
    await container.run_python("pass")  # a message that was left may answer this one
    assert "2" in await read_logs(container, "1 + 1")


@ON_THE_KERNEL_OF_THE_HOST
async def test_the_descriptors_of_the_driver_are_out_of_reach(hostile: Container) -> None:
    for path in ("/proc/2/fd", "/proc/2/mem", "/proc/2/environ", "/proc/2/root"):
        code = (
            f"attempt(lambda: os.listdir({path!r}) if {path!r}.endswith('d') else open({path!r}))"
        )
        assert await read_logs(hostile, code) in ("'EACCES'", "'EPERM'", "'ESRCH'")


@ON_THE_KERNEL_OF_THE_HOST
async def test_nothing_of_the_server_is_open_at_bubblewrap(hostile: Container) -> None:
    """bubblewrap runs inside as process 1, and may have the user of the code (CVE-2024-21626)."""
    names = "print(*[os.readlink(f'/proc/1/fd/{fd}') for fd in os.listdir('/proc/1/fd')])"
    for name in (await read_logs(hostile, names)).split():
        assert name == "/dev/null" or name.startswith(("pipe:", "anon_inode:")), name
    write = "attempt(lambda: os.write(os.open('/proc/1/fd/2', os.O_WRONLY), b'x'))"
    # A server that is not root has the same user; then its pipe has no reader.
    assert await read_logs(hostile, write) in ("'EACCES'", "'EPIPE'")
    for name in ("mem", "exe"):
        change = f"attempt(lambda: os.open('/proc/1/{name}', os.O_RDWR))"
        assert await read_logs(hostile, change) in ("'EROFS'", "'EACCES'", "'ETXTBSY'")


# Use without end


async def test_a_fork_bomb_stays_in_its_container(sandbox: Tool) -> None:
    async with opened_containers() as containers:
        attacked, other = await containers.create("a"), await containers.create("b")
        result = await attacked.run_command(":(){ :|:& };:; sleep 1", timeout_s=2.0)
        assert "fork" in result.stderr
        assert await read_logs(other, "1 + 1") == "2"
        await attacked.end()


async def test_a_memory_bomb_ends_its_container(container: Container) -> None:
    alone = await container.run_python("x = [bytearray(10**7) for _ in range(10**6)]")
    assert "MemoryError" in (alone.error or "")
    many = "import os, time\nfor _ in range(3): os.fork()\nx = b'1' * (10**8)\ntime.sleep(10**6)"
    with pytest.raises(ContainerEnded, match="256 MiB of memory"):
        await container.run_python(many)


SOCKETS = """
import os, socket, time
def fill(end):
    end.setblocking(False)
    try:
        while True:
            end.send(bytes(60_000))
    except OSError:
        pass
"""


@ON_THE_KERNEL_OF_THE_HOST
async def test_the_memory_of_the_kernel_for_sockets_is_bounded(sandbox: Tool) -> None:
    many = f"""{SOCKETS}
os.fork(), os.fork()
ends = [socket.socketpair() for _ in range(100)]
for pair in ends: fill(pair[0])
time.sleep(10**6)"""
    async with opened_container() as container:
        with pytest.raises(ContainerEnded, match="256 sockets"):
            await container.run_python(many)
    long = f"""{SOCKETS}
os.fork(), os.fork()
listener = socket.create_server(("127.0.0.1", 0))
ends = []
try:
    while True:
        ends.append((socket.create_connection(listener.getsockname()), listener.accept()))
        fill(ends[-1][0])
except OSError:
    time.sleep(10**6)"""
    async with opened_container(replace(LIMITS, memory_bytes=128 * 2**20)) as container:
        # A kernel with little memory left for TCP takes less data in each connection.
        with pytest.raises(ContainerEnded, match=r"128 MiB of memory|256 sockets"):
            await container.run_python(long)


async def test_connections_inside_have_no_such_limit(hostile: Container) -> None:
    code = """
listener = socket.create_server(("127.0.0.1", 0))
for _ in range(600):
    with socket.create_connection(listener.getsockname()), listener.accept()[0]:
        pass
"""
    assert await read_logs(hostile, code) == ""


async def test_disks_have_an_end(container: Container, sandbox: Tool) -> None:
    size = LIMITS.file_bytes
    for place, part in (("/mnt/data", 1), ("/tmp", 2), ("/dev/shm", 4)):
        command = f"for i in 1 2 3 4 5 6 7 8; do head -c {size} /dev/zero > {place}/$i; done"
        await container.run_command(command)
        used = int((await read_shell(container, f"du -sB1 {place}")).split()[0])
        assert used <= size // part
    if sandbox == "gvisor":
        return  # there, files without content are memory of the container
    with pytest.raises(ContainerEnded, match="5000 files"):
        await container.run_command("i=0; while true; do i=$((i+1)); mkdir /tmp/d$i; done")


async def test_output_without_end_is_left_out(container: Container) -> None:
    result = await container.run_command("yes", timeout_s=0.5)
    assert len(result.stdout) <= LIMITS.output_bytes and "left out" in result.stderr
    printed = await container.run_python("for _ in range(10**5): print('x' * 100)")
    assert len(printed.logs) <= LIMITS.output_bytes + 100


async def test_zombies_and_orphans_are_bounded(container: Container) -> None:
    code = """
import os
for _ in range(1000):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError as error:
        print(error.strerror)
        break
"""
    assert "unavailable" in (await container.run_python(code)).logs
    # The shell may complain that it had to try again: the zombies go a little later.
    ended = await container.run_command("sleep 1000000 & disown; echo ended")
    assert ended.stdout.strip() == "ended"


# Files that come out


async def test_files_that_are_no_files_do_not_come_out(hostile: Container, secret: Path) -> None:
    command = f"""
ln -s {secret} link; ln -s /etc/passwd passwd; ln -s / dir; ln -s /mnt/data loop; mkfifo fifo
ln /run/ouzel/driver.py hard; echo fine > fine; ln fine hard2; mkdir deep; cd deep
for i in $(seq 40); do mkdir d; cd d; done; echo x > bottom
"""
    await hostile.run_command(command)
    socket_file = "s = socket.socket(socket.AF_UNIX); s.bind('/mnt/data/socket')"
    await read_logs(hostile, socket_file)
    files = {file.path: file for file in await hostile.list_files()}
    assert set(files) == {"fine", "hard2"}
    # The file becomes a link, a directory or a pipe after it was listed.
    for change in ("ln -sf /etc/passwd fine", "mkdir fine", "mkfifo fine"):
        await read_shell(hostile, f"rm -rf fine; {change}")
        with pytest.raises(FileRefused, match="cannot be read"):
            _ = [piece async for piece in hostile.read_file(files["fine"])]
    await read_shell(hostile, "rm -rf fine; mkdir inner; echo x > inner/file")
    listed = {file.path: file for file in await hostile.list_files()}
    await read_shell(hostile, "rm -r inner; ln -s /etc inner")
    with pytest.raises(FileRefused):
        _ = [piece async for piece in hostile.read_file(listed["inner/file"])]


async def test_a_client_does_not_write_through_a_link(hostile: Container) -> None:
    await read_shell(hostile, "ln -s /tmp/target data.csv; touch /tmp/target")
    await hostile.write_file("data.csv", pieces(b"private"))
    assert (
        await read_shell(hostile, "cat /tmp/target; test -L data.csv || cat data.csv") == "private"
    )


async def test_an_upload_does_not_wait_for_a_pipe_in_its_place(hostile: Container) -> None:
    async def swapped() -> AsyncIterator[bytes]:
        yield b"one"
        await read_logs(hostile, "os.unlink('up.txt'); os.mkfifo('up.txt')")
        yield b"two"

    with pytest.raises(FileRefused, match=r"up\.txt cannot be written"):
        await hostile.write_file("up.txt", swapped())
    assert await hostile.list_files() == []


async def test_strange_names_are_not_listed(hostile: Container) -> None:
    code = r"""
for name in (b'a' * 255, b'new\nline', b'\xff\xfe', b'esc\x1b[2J', 'right\u202eleft'.encode()):
    open(b'/mnt/data/' + name, 'w').close()
"""
    result = await hostile.run_python(code)
    assert [file.path for file in result.files] == ["a" * 255]


async def test_a_sparse_file_cannot_be_longer_than_the_disk(hostile: Container) -> None:
    code = "attempt(lambda: open('sparse', 'wb').truncate(10**12))"
    assert await read_logs(hostile, code) == "'EFBIG'"


async def test_a_listing_is_bounded(sandbox: Tool) -> None:
    async with opened_container(replace(LIMITS, max_inodes=100_000)) as container:
        result = await container.run_python("for i in range(3000): open(str(i), 'w').close()")
        assert len(result.files) == 1000


# The server


SERVER = """
import asyncio
from tests.hosted_tools.code_interpreter.sandboxes import opened_container

async def main():
    async with opened_container() as container:
        await container.run_python("import subprocess; subprocess.Popen(['sleep', '1000000'])")
        print("ready", flush=True)
        await container.run_python("while True: pass")

asyncio.run(main())
"""


async def test_a_killed_server_leaves_no_process(sandbox: Tool) -> None:
    command = [sys.executable, "-c", SERVER]
    server = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert await asyncio.to_thread(server.stdout.readline) == b"ready\n"
    family = _list_family(server.pid)
    assert len(family) >= 4  # bubblewrap twice, the driver, Python
    watched = [os.pidfd_open(pid) for pid in family]
    server.send_signal(signal.SIGKILL)
    await asyncio.to_thread(server.wait)
    for pidfd in watched:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(pidfd, ended.set)
        await ended.wait()
        loop.remove_reader(pidfd)
        os.close(pidfd)
    server.stdout.close()


def _list_family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = []
    for child in map(int, children):
        found += [child, *_list_family(child)]
    return found


async def test_the_server_gets_no_descriptors_and_keeps_none(sandbox: Tool) -> None:
    async with opened_containers() as containers:
        await (await containers.create(None)).end()
        before = os.listdir("/proc/self/fd")
        container = await containers.create(None)
        for _ in range(3):
            await container.run_python(FORGE.format(text=b"not JSON\n"))
        await container.end()
        assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_a_setuid_bubblewrap_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bubblewrap with the rights of root had errors (CVE-2016-8659, CVE-2020-5291)."""
    program = tmp_path / "bwrap"
    program.touch()
    program.chmod(0o4755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="setuid"):
        find_bubblewrap()


@ON_THE_KERNEL_OF_THE_HOST
async def test_the_root_of_the_sandbox_is_in_memory(hostile: Container) -> None:
    """The root has no path on the host that others could guess (CVE-2019-12439)."""
    mounts = (await read_shell(hostile, "cat /proc/self/mounts")).splitlines()
    assert next(line for line in mounts if line.split()[1] == "/").startswith("tmpfs / tmpfs ro")
    assert not [name for name in os.listdir("/tmp") if name.startswith(".bubblewrap")]
