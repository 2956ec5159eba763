"""Containers run code and commands, keep files, and end."""

import asyncio
import os
from dataclasses import replace

import pytest

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.code_interpreter.records import (
    ContainerEnded,
    ContainerNotFound,
    FileRefused,
    TooManyContainers,
)
from tests.hosted_tools.code_interpreter.sandboxes import (
    LIMITS,
    Tool,
    make_plan,
    opened_container,
    opened_containers,
    pieces,
    read_logs,
    read_shell,
)

PNG = b"\x89PNG\r\n\x1a\n"


async def read_whole(container: Container, file_id: str) -> bytes:
    file = await container.find_file(file_id)
    return b"".join([piece async for piece in container.read_file(file)])


async def test_variables_stay_and_the_last_expression_is_shown(container: Container) -> None:
    assert await read_logs(container, "import math\nx = 20\nx + 1") == "21"
    assert await read_logs(container, "print('sum'); x + math.floor(2.5)") == "sum\n22"
    assert await read_logs(container, "x;") == "20"
    assert await read_logs(container, "x = None\nx") == ""


async def test_code_may_use_processes_and_threads(container: Container) -> None:
    code = """
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
def square(x): return x * x
with multiprocessing.Pool(2) as pool: squares = pool.map(square, range(4))
list(ThreadPoolExecutor(2).map(square, squares))
"""
    assert await read_logs(container, code) == "[0, 1, 16, 81]"


async def test_a_traceback_shows_the_code_of_the_call_only(container: Container) -> None:
    result = await container.run_python("def half(x):\n    return x / 0\nhalf(3)")
    assert result.error == "ZeroDivisionError: division by zero"
    assert "return x / 0" in result.logs and "session.py" not in result.logs
    assert "SyntaxError" in (await container.run_python("if")).logs


async def test_exits_and_crashes_of_python_lose_the_state_only(container: Container) -> None:
    assert (await container.run_python("x = 1; raise SystemExit(2)")).error == "SystemExit: 2"
    assert await read_logs(container, "open('a', 'w').write('b'); x") == "1"
    crashed = await container.run_python("import os; os.abort()")
    assert crashed.is_state_lost and "SIGABRT" in (crashed.error or "")
    assert await read_logs(container, "open('a').read()") == "'b'"
    assert "NameError" in ((await container.run_python("x")).error or "")


async def test_code_that_computes_too_long_is_interrupted_and_keeps_its_state(
    sandbox: Tool,
) -> None:
    async with opened_container(replace(LIMITS, cpu_s=1.0)) as container:
        await read_logs(container, "x = 1")
        result = await container.run_python("print('begun')\nwhile True: pass")
        assert result.is_interrupted and not result.is_state_lost
        assert "processor time" in (result.error or "")
        assert result.logs.startswith("begun\n") and "KeyboardInterrupt" in result.logs
        assert await read_logs(container, "x") == "1"


async def test_code_that_ignores_the_interrupt_is_killed(sandbox: Tool) -> None:
    async with opened_container(replace(LIMITS, cpu_s=1.0)) as container:
        code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
        result = await container.run_python(f"open('a', 'w').write('b')\n{code}")
        assert result.is_interrupted and result.is_state_lost
        assert await read_logs(container, "open('a').read()") == "'b'"


async def test_a_call_that_waits_too_long_is_interrupted(sandbox: Tool) -> None:
    async with opened_container(replace(LIMITS, call_timeout_s=0.5)) as container:
        result = await container.run_python("import time\nwhile True: time.sleep(1)")
        assert result.is_interrupted and "0.5 seconds" in (result.error or "")
        command = await container.run_command("while true; do sleep 1; done")
        assert command.exit_code is None


async def test_a_cancelled_call_is_interrupted(container: Container) -> None:
    await read_logs(container, "x = 1")
    call = asyncio.create_task(container.run_python("import time\ntime.sleep(10**6)"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await read_shell(container, "echo next") == "next"


async def test_commands_have_exit_codes_and_two_outputs(container: Container) -> None:
    result = await container.run_command("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert await read_shell(container, "pwd; id -u; hostname") == "/mnt/data\n1000\nsandbox"
    short = await container.run_command("yes | head -c 5000", output_bytes=100)
    assert len(short.stdout) == 100 and "4900 further bytes" in short.stderr
    timed_out = await container.run_command("sleep 1000000", timeout_s=0.2)
    assert timed_out.exit_code is None


CLOCK = """
import os, threading, time
times = []
def tick():
    while True:
        times.append(time.monotonic())
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
while len(times) < 5: time.sleep(0.01)
"""


async def test_processes_run_during_calls_only(container: Container) -> None:
    await read_logs(container, CLOCK)
    await asyncio.sleep(0.5)
    pause = "before = len(times)\nwhile len(times) < before + 5: time.sleep(0.01)\n"
    longest = "max(after - earlier for earlier, after in zip(times, times[1:]))"
    assert float(await read_logs(container, pause + longest)) >= 0.4


async def test_files_of_clients_and_of_code(container: Container) -> None:
    big = os.urandom(3 * 2**20)
    put = await container.write_file("dir/../input.bin", pieces(big[:5], big[5:]))
    assert (put.path, put.size_bytes, put.is_users) == ("input.bin", len(big), True)
    code = (
        "import os\nos.makedirs('d')\nopen('d/out.bin', 'wb').write(open('input.bin', 'rb').read())"
    )
    result = await container.run_python(code)
    [made] = result.files
    assert (made.path, made.is_users) == ("d/out.bin", False)
    assert await read_whole(container, made.id) == big
    assert [file.path for file in await container.list_files()] == ["input.bin", "d/out.bin"]
    again = await container.write_file("input.bin", pieces())
    assert again.id != put.id and again.size_bytes == 0
    await container.delete_file(made.id)
    assert [file.path for file in await container.list_files()] == ["input.bin"]
    with pytest.raises(InvalidRequest, match="no file"):
        await container.find_file(made.id)


@pytest.mark.parametrize("name", ["", "..", "/", "a\nb", "a" * 300])
async def test_names_of_files_are_checked(container: Container, name: str) -> None:
    with pytest.raises(FileRefused):
        await container.write_file(name, pieces(b"x"))


async def test_a_file_without_room_is_refused(container: Container) -> None:
    with pytest.raises(FileRefused, match="cannot be written"):
        await container.write_file("big", pieces(*[b"x" * 2**20] * 20))


async def test_images_are_taken_from_values_and_figures(container: Container) -> None:
    shown = f"class P:\n    def _repr_png_(self): return {PNG!r}\nP()"
    result = await container.run_python(shown)
    assert result.images == (PNG,) and result.logs == ""
    # A module in the place of matplotlib, which is a large package.
    figures = f"""
import sys, types
class Figure:
    def savefig(self, file, **_): file.write({PNG!r} + b'figure')
plots = types.ModuleType("matplotlib.pyplot")
plots.open = [1, 2]
plots.get_fignums = lambda: list(plots.open)
plots.figure = lambda number: Figure()
plots.close = lambda which: plots.open.clear()
sys.modules["matplotlib.pyplot"] = plots
"""
    assert (await container.run_python(figures)).images == (PNG + b"figure",) * 2
    assert (await container.run_python("1")).images == ()


async def test_containers_belong_to_a_key(sandbox: Tool) -> None:
    async with opened_containers(max_containers=2) as containers:
        made = await containers.create("a", name="mine")
        assert containers.find(made.id, "a") is made and list(containers.list("b")) == []
        for key_id in ("b", None):
            with pytest.raises(ContainerNotFound):
                containers.find(made.id, key_id)
        await containers.create("b")
        with pytest.raises(TooManyContainers, match="2 containers"):
            await containers.create("c")
        await made.end()
        await containers.create("c")


async def test_no_key_takes_all_containers(sandbox: Tool) -> None:
    containers = Containers(make_plan(), max_containers=3, max_per_key=2, idle_s=3600.0)
    try:
        asked = await asyncio.gather(
            *(containers.create("greedy") for _ in range(5)), return_exceptions=True
        )
        refused = [each for each in asked if isinstance(each, TooManyContainers)]
        assert len(refused) == 3 and "per_key" in str(refused[0])
        assert len(containers.list("greedy")) == 2
        await containers.create("modest")
        with pytest.raises(TooManyContainers, match="this server has 3"):
            await containers.create("late")
        await containers.list("greedy")[0].end()
        await containers.create("greedy")
    finally:
        await containers.close()


async def test_an_automatic_container_takes_the_place_of_an_unused_one(sandbox: Tool) -> None:
    containers = Containers(make_plan(), max_containers=3, idle_s=3600.0)
    try:
        named = await containers.create("a")
        first, second = [await containers.create("a", is_automatic=True) for _ in range(2)]
        for each in (named, first, second):
            each.last_active_at -= 1000
        first.last_active_at -= 1000
        for key_id, is_automatic in (("a", False), ("b", True)):
            with pytest.raises(TooManyContainers):
                await containers.create(key_id, is_automatic=is_automatic)
        third = await containers.create("a", is_automatic=True)
        assert containers.list("a") == [named, second, third]
        await second.run_python("1")
        with pytest.raises(TooManyContainers):  # both are in use
            await containers.create("a", is_automatic=True)
    finally:
        await containers.close()


async def test_an_idle_container_ends(sandbox: Tool) -> None:
    async with opened_containers(idle_s=0.2) as containers:
        container = await containers.create(None)
        await container.has_ended.wait()
        with pytest.raises(ContainerNotFound, match="expired"):
            containers.find(container.id, None)
        with pytest.raises(ContainerEnded, match="idle"):
            await container.run_python("1")
