"""`ouzel batch` runs a file of requests on a server or in its process, also after Ctrl-C."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any  # JSON

import msgspec
import pytest

from tests.api.batches.setup import chat_line, jsonl
from tests.api.serving import RunningServer, running_server
from tests.serve.forks import run_command, start_command


def run_batch(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command("batch", *arguments)


def interrupt(*arguments: str, when: Callable[[], bool]) -> tuple[int, str]:
    """Runs the command and sends Ctrl-C when the condition is true; returns status and errors."""
    process = start_command(("batch", *arguments))
    while not when():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    return process.returncode, errors


def write_lines(path: Path, lines: Iterable[object]) -> str:
    path.write_bytes(jsonl(lines))
    return str(path)


def read(path: Path) -> list[Any]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def own_lines(num_lines: int, **fields: object) -> list[dict[str, Any]]:
    return [
        chat_line(f"id-{number}", f"Say {number}.", model="ouzel-demo", max_tokens=8, **fields)
        for number in range(num_lines)
    ]


def test_a_model_in_the_process_runs_a_file(tmp_path: Path) -> None:
    lines = own_lines(30)
    lines[3]["body"]["temperature"] = 9
    file = write_lines(tmp_path / "requests.jsonl", lines)

    done = run_batch(file, "--kv-cache-gib", "0.05")

    assert done.returncode == 1, done.stderr
    assert "29 of 30 requests succeeded, 1 failed" in done.stdout
    results = read(tmp_path / "requests.results.jsonl")
    assert [each["custom_id"] for each in results] == [
        f"id-{number}" for number in range(30) if number != 3
    ]
    [error] = read(tmp_path / "requests.errors.jsonl")
    assert (error["custom_id"], error["response"]["status_code"]) == ("id-3", 400)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "requests.errors.jsonl",
        "requests.jsonl",
        "requests.results.jsonl",
    ]


def test_after_ctrl_c_the_same_command_goes_on(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "requests.jsonl", own_lines(2000))
    partial = tmp_path / "requests.results.jsonl.partial"

    status, errors = interrupt(
        file,
        "--kv-cache-gib",
        "0.05",
        when=lambda: partial.exists() and partial.stat().st_size > 20_000,
    )
    assert status == 130
    assert "goes on behind the results" in errors
    before = {each["custom_id"]: each["result"] for each in read(partial)}
    with partial.open("ab") as file_of_results:
        file_of_results.write(b'{"position": 5, "custom_id": "id-')  # a crash while it wrote

    done = run_batch(file, "--kv-cache-gib", "0.05")

    assert done.returncode == 0, done.stderr
    results = {each["custom_id"]: each for each in read(tmp_path / "requests.results.jsonl")}
    assert list(results) == [f"id-{number}" for number in range(2000)]
    assert before
    assert all(results[custom_id] == result for custom_id, result in before.items())
    assert not partial.exists()


def test_a_server_runs_a_file(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "requests.jsonl", [chat_line(f"id-{each}", "hello") for each in range(20)]
    )
    with running_server(store_url=f"sqlite:///{tmp_path}/store.sqlite3") as server:
        done = run_batch(file, "--url", server.url, "--output", str(tmp_path / "out.jsonl"))
    assert done.returncode == 0, done.stderr
    assert "completed: 20 of 20 requests succeeded" in done.stdout
    assert len(read(tmp_path / "out.jsonl")) == 20


def test_the_faults_of_a_file_are_shown(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "requests.jsonl", [chat_line("a", "x"), chat_line("a", "y")])
    with running_server(store_url=f"sqlite:///{tmp_path}/store.sqlite3") as server:
        done = run_batch(file, "--url", server.url)
    assert done.returncode == 1
    assert "line 2: custom_id must differ" in done.stderr
    here = run_batch(file)
    assert here.returncode != 0
    assert "line 2: custom_id must differ" in here.stderr


def begin_and_interrupt(tmp_path: Path, server: RunningServer, *, num_lines: int) -> str:
    """Begins a batch on the server and sends Ctrl-C; returns the file of the requests."""
    file = write_lines(
        tmp_path / "requests.jsonl",
        [chat_line(f"id-{each}", "x" * 200) for each in range(num_lines)],
    )
    state = tmp_path / "requests.batch.json"
    status, errors = interrupt(file, "--url", server.url, when=state.exists)
    assert status == 130
    assert "the server goes on" in errors
    return file


def test_the_same_command_waits_again_for_the_batch_of_a_server(tmp_path: Path) -> None:
    slow = {"step_s": 0.01}  # the batch takes seconds, in which the server sleeps
    with running_server(slow, store_url=f"sqlite:///{tmp_path}/store.sqlite3") as server:
        file = begin_and_interrupt(tmp_path, server, num_lines=300)
        done = run_batch(file, "--url", server.url)
        with server.client() as http:
            assert len(http.get("/v1/batches").json()["data"]) == 1
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "requests.results.jsonl")) == 300
    assert not (tmp_path / "requests.batch.json").exists()


def test_a_batch_of_a_server_is_cancelled(tmp_path: Path) -> None:
    slow = {"step_s": 0.05}  # the whole batch would take minutes
    with running_server(slow, store_url=f"sqlite:///{tmp_path}/store.sqlite3") as server:
        file = begin_and_interrupt(tmp_path, server, num_lines=1500)
        done = run_batch(file, "--url", server.url, "--cancel")
    assert done.returncode == 1
    assert "cancelled: " in done.stdout
    assert not (tmp_path / "requests.batch.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cancel",), "--cancel: needs --url"),
        (("--api-key", "x"), "--api-key: needs --url"),
        (("--url", "http://localhost:1", "some-model"), "some-model: cannot be used with --url"),
        (("--port", "1"), "--port: is an option of ouzel serve"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    file = write_lines(tmp_path / "requests.jsonl", own_lines(1))
    done = run_batch(file, *arguments)
    assert done.returncode != 0
    assert message in done.stderr
