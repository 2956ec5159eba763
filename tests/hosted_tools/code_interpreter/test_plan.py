"""The commands, the filter and the frames are right; these tests need no sandbox."""

import asyncio
import errno
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from ouzel.hosted_tools.code_interpreter.bubblewrap import find_bubblewrap, write_command
from ouzel.hosted_tools.code_interpreter.cgroup import (
    make_cgroup,
    prepare_cgroup,
    remove_cgroup,
)
from ouzel.hosted_tools.code_interpreter.container_files import ContainerFiles, check_file_name
from ouzel.hosted_tools.code_interpreter.frames import (
    FileFacts,
    FrameFault,
    Header,
    read_frame,
    write_frame,
)
from ouzel.hosted_tools.code_interpreter.records import FileRefused, SandboxUnavailable
from ouzel.hosted_tools.code_interpreter.syscall_filter import make_filter
from tests.hosted_tools.code_interpreter.sandboxes import LIMITS, make_plan

BUBBLEWRAP = Path("/usr/bin/bwrap")
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
KILLED, ALLOWED = -1, 0


def write(**changes: object) -> list[str]:
    return write_command(
        BUBBLEWRAP,
        replace(make_plan(), **changes),  # type: ignore[arg-type]  # any field
        texts={"/run/ouzel/driver.py": 7},
        seccomp_fd=8,
        info_fd=9,
        command=["python3", "driver.py"],
    )


def list_places(command: list[str], option: str) -> list[str]:
    """Returns the second arguments of an option."""
    return [command[at + 2] for at, word in enumerate(command) if word == option]


def test_everything_is_the_sandboxes_own() -> None:
    command = write()
    for flags in (
        ["--unshare-all", "--unshare-user", "--disable-userns"],
        ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"],
        ["--seccomp", "8"],
    ):
        start = command.index(flags[0])
        assert command[start : start + len(flags)] == flags
    assert command[-3:] == ["--", "python3", "driver.py"]
    # nothing is writable but file systems in memory
    assert not {"--bind", "--dev-bind", "--bind-try", "--share-net"} & set(command)
    last_mount = max(at for at, word in enumerate(command) if word == "--tmpfs")
    assert command.index("--remount-ro") > last_mount


def test_only_parts_of_the_host_are_shown() -> None:
    places = {*list_places(write(), "--ro-bind"), *list_places(write(), "--ro-bind-try")}
    assert "/usr" in places
    for hidden in ("/", "/etc", "/home", "/root", "/var", "/sys", "/run", "/tmp", "/opt"):
        assert hidden not in places
    assert "/etc/passwd" not in places and "/etc/shadow" not in places


def test_the_system_of_the_operator_is_shown(tmp_path: Path) -> None:
    for name in ("usr/bin", "etc", "opt", "proc", "tmp", "home"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    for name in ("passwd", "shadow", "ld.so.conf"):
        (tmp_path / "etc" / name).touch()
    command = write(root=tmp_path)
    places = list_places(command, "--ro-bind")
    assert {"/usr", "/opt", "/home", "/etc/ld.so.conf"} <= set(places)
    assert not {"/proc", "/tmp", "/etc/passwd", "/etc"} & set(places)
    assert "/bin" in list_places(command, "--symlink")
    sources = [command[at + 1] for at, word in enumerate(command) if word == "--ro-bind"]
    assert all(each == "/dev/null" or each.startswith(str(tmp_path)) for each in sources)


def test_a_machine_without_bubblewrap_reads_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        find_bubblewrap()


# The filter of system calls


def run_filter(program: bytes, arch: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Runs the program as the kernel does: returns ALLOWED, KILLED or the number of an error."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *(*arguments, *[0] * 6)[:6])
    instructions = list(struct.iter_unpack("=HBBI", program))
    accumulator = at = 0
    while True:
        code, if_true, if_false, constant = instructions[at]
        at += 1
        match code:
            case 0x20:
                [accumulator] = struct.unpack_from("=I", data, constant)
            case 0x15:
                at += if_true if accumulator == constant else if_false
            case 0x35:
                at += if_true if accumulator >= constant else if_false
            case 0x45:
                at += if_true if accumulator & constant else if_false
            case 0x06 if constant == 0x7FFF0000:
                return ALLOWED
            case 0x06 if constant == 0x80000000:
                return KILLED
            case 0x06 if constant >> 16 == 5:
                return int(constant & 0xFFFF)
            case _:
                raise AssertionError(f"an instruction that the kernel may not know: {code:#x}")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_calls_by_number_and_arguments(machine: str) -> None:
    program = make_filter(machine)
    assert program is not None and len(program) % 8 == 0 and len(program) // 8 < 4096
    is_x86 = machine == "x86_64"
    ptrace, clone, socket, ioctl, read, add_key = (
        (101, 56, 41, 16, 0, 248) if is_x86 else (117, 220, 198, 29, 63, 217)
    )
    cases: list[tuple[int, tuple[int, ...], int]] = [
        (read, (), ALLOWED),
        (ptrace, (), errno.EPERM),
        (add_key, (), errno.EPERM),
        (435, (), errno.ENOSYS),  # clone3
        (457, (), errno.ENOSYS),  # newer than the table
        (456, (), ALLOWED),
        (clone, (0x11,), ALLOWED),
        (clone, (0x3D0F00,), ALLOWED),  # a thread
        (clone, (0x10000011,), errno.EPERM),  # CLONE_NEWUSER
        (clone, (0x20000,), errno.EPERM),  # CLONE_NEWNS
        (ioctl, (0, 0x5401), ALLOWED),
        (ioctl, (0, 0x5412), errno.EPERM),  # TIOCSTI
        (ioctl, (0, 0x541C), errno.EPERM),  # TIOCLINUX
        (ioctl, (0, 0x1_0000_5412), errno.EPERM),  # the kernel reads the lower half only
        *[(socket, (family,), ALLOWED) for family in (1, 2, 10)],
        *[(socket, (family,), errno.EAFNOSUPPORT) for family in (0, 16, 17, 38, 40)],
    ]
    for number, arguments, expected in cases:
        assert run_filter(program, ARCH[machine], number, arguments) == expected, number
    other = ARCH["aarch64" if is_x86 else "x86_64"]
    assert run_filter(program, other, read) == KILLED
    if is_x86:
        assert run_filter(program, ARCH[machine], 0x40000000) == KILLED  # x32


def test_other_processors_have_no_filter() -> None:
    assert make_filter("riscv64") is None


# Frames


async def read(data: bytes) -> tuple[Header, bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_frame(reader)


async def test_frames_are_read_back() -> None:
    header, payload = await read(write_frame({"kind": "stdout"}, b"text"))
    assert (header.kind, payload) == ("stdout", b"text")


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!II", 2**31, 0),
        struct.pack("!II", 2, 2**31) + b"{}",
        struct.pack("!II", 2, 0) + b"{}",
        struct.pack("!II", 1, 0) + b"\xff",
        write_frame({"kind": "other"}),
        write_frame({"kind": "done", "dropped": "many"}),
        write_frame({"kind": "done", "files": [["a"]]}),
        write_frame({"kind": "done", "files": [["a", 1, 1]] * 1001}),
        struct.pack("!II", 100_000, 0) + b"[" * 100_000,
    ],
)
async def test_forged_frames_are_refused(data: bytes) -> None:
    with pytest.raises(FrameFault):
        await read(data)


async def test_a_frame_that_breaks_off_is_an_end() -> None:
    with pytest.raises(EOFError):
        await read(write_frame({"kind": "stdout"}, b"text")[:-1])


# Files


def test_a_file_keeps_its_id_until_it_is_gone() -> None:
    files = ContainerFiles()
    [first] = files.update([FileFacts("a", 1, 1)], ["a"])
    [second] = files.update([FileFacts("a", 2, 2)], ["a", "gone"])
    assert second.id == first.id and second.size_bytes == 2
    files.update([], [])
    [third] = files.update([FileFacts("a", 1, 1)], ["a"])
    assert third.id != first.id


@pytest.mark.parametrize(
    ("name", "expected"), [("a.txt", "a.txt"), ("../../a", "a"), ("C:\\b\\c.csv", "c.csv")]
)
def test_names_of_uploads_lose_their_directories(name: str, expected: str) -> None:
    assert check_file_name(name) == expected


@pytest.mark.parametrize("name", ["", "/", "..", "a\n", "\x1b[2J", "a" * 201])
def test_wrong_names_of_uploads_are_refused(name: str) -> None:
    with pytest.raises(FileRefused):
        check_file_name(name)


# Cgroups: a directory stands for the kernel's


def test_a_cgroup_gets_the_limits_of_a_container(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    prepare_cgroup(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"
    made = make_cgroup(tmp_path, "x", make_plan())
    assert int((made / "memory.max").read_text()) >= LIMITS.memory_bytes + LIMITS.file_bytes
    assert int((made / "pids.max").read_text()) == LIMITS.max_processes + 4
    for file in made.iterdir():  # a cgroup is removed with its files
        file.unlink()
    (made / "cgroup.kill").mkdir()
    (made / "cgroup.kill").rmdir()
    remove_cgroup(made)


def test_a_cgroup_without_controllers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    with pytest.raises(SandboxUnavailable, match="lacks the controllers memory, pids"):
        prepare_cgroup(tmp_path)
    with pytest.raises(SandboxUnavailable, match="a cgroup of version 2"):
        prepare_cgroup(tmp_path / "none")
