"""The tools gVisor and bubblewrap differ: code in gVisor has a kernel of its own.

Everything else about containers is tested with both tools, in the other files of this folder.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.gvisor import find_runsc, write_bundle, write_command
from ouzel.hosted_tools.code_interpreter.records import SandboxUnavailable
from tests.hosted_tools.code_interpreter.sandboxes import (
    LIMITS,
    Tool,
    make_plan,
    opened_container,
    read_logs,
    read_shell,
)

IN_GVISOR = pytest.mark.parametrize("sandbox", ["gvisor"], indirect=True)


def test_a_machine_without_gvisor_reads_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="apt-get install runsc"):
        find_runsc()


def test_a_bundle_gives_no_rights_and_bounds_every_writable_place() -> None:
    plan = replace(make_plan(), tool="gvisor")
    bundle = json.loads(write_bundle(plan, ["python3", "driver.py"]))
    assert bundle["root"] == {"path": "/system", "readonly": True}
    process = bundle["process"]
    assert process["capabilities"] == {} and process["noNewPrivileges"]
    assert process["user"] == {"uid": 1000, "gid": 1000}
    mounts = {each["destination"]: each.get("options", []) for each in bundle["mounts"]}
    assert set(mounts) == {"/proc", "/mnt/data", "/tmp", "/dev/shm"}
    assert f"size={LIMITS.file_bytes}" in mounts["/mnt/data"]
    assert f"size={LIMITS.file_bytes // 2}" in mounts["/tmp"]


def test_gvisor_runs_in_namespaces_and_sees_its_system_read_only(tmp_path: Path) -> None:
    python = tmp_path / "analysis"
    plan = replace(make_plan(), tool="gvisor", shown_paths=(python,))
    runsc = Path("/usr/bin/runsc")
    texts = {"/run/ouzel/driver.py": 7}
    command = write_command(Path("bwrap"), runsc, plan, texts=texts, bundle_fd=8, info_fd=9)
    assert {"--unshare-all", "--die-with-parent", "--new-session", "--clearenv"} <= set(command)
    assert not {"--bind", "--dev-bind", "--bind-try", "--share-net"} & set(command)
    shown = [command[at + 2] for at, word in enumerate(command) if word == "--ro-bind"]
    assert {"/system/usr", f"/system{python}", "/runsc"} <= set(shown)
    assert all(each == "/runsc" or each.startswith("/system/") for each in shown)
    made = [command[at + 1] for at, word in enumerate(command) if word == "--dir"]
    assert {"/system", "/system/run/ouzel", f"/system{tmp_path}", "/system/etc"} <= set(made)
    assert command[command.index("--network") + 1] == "none"


@IN_GVISOR
async def test_the_kernel_inside_is_not_the_kernel_of_the_machine(container: Container) -> None:
    assert await read_logs(container, "import os; print(os.uname().version)") != os.uname().version
    # The numbers of processes begin anew, and none of the machine is there.
    pids = "sorted(int(name) for name in os.listdir('/proc') if name.isdecimal())"
    assert await read_logs(container, pids) == "[1, 2]"
    interfaces = "sum(':' in line for line in open('/proc/net/dev'))"
    assert int(await read_logs(container, interfaces)) <= 1


@IN_GVISOR
async def test_the_programs_inside_see_no_bundle_and_no_state_of_gvisor(
    container: Container,
) -> None:
    found = await read_shell(container, "find / -xdev -name 'config.json' -o -name 'runsc*' | head")
    assert "/bundle" not in found and "/run/runsc" not in found
    mounts = await read_shell(container, "cat /proc/self/mounts")
    root = next(line for line in mounts.splitlines() if line.split()[1] == "/")
    assert "ro" in root.split()[3].split(",")


@IN_GVISOR
async def test_no_state_of_gvisor_is_left_on_the_machine(sandbox: Tool) -> None:
    places = [Path("/run"), Path("/var/run"), Path("/tmp")]
    before = {name for place in places for name in os.listdir(place) if "runsc" in name}
    async with opened_container() as container:
        await read_logs(container, "1")
        during = {name for place in places for name in os.listdir(place) if "runsc" in name}
    after = {name for place in places for name in os.listdir(place) if "runsc" in name}
    assert before == during == after
