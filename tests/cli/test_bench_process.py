"""Runs `ouzel bench` in a process of its own: a local model, closed output, Ctrl-C."""

import json
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any  # JSON

import pytest

from tests.api.engines import received_prompts
from tests.api.serving import running_server
from tests.cli.bench_processes import start_bench
from tests.release_only import release_only

pytestmark = pytest.mark.serves


@pytest.mark.parametrize(
    "workload",
    ["tools", *release_only("plain prompts beside tools", "random")],
)
def test_a_model_in_this_process(tmp_path: Path, workload: str) -> None:
    arguments = (
        "--workload",
        workload,
        "--num-prompts",
        "3",
        "--output-len",
        "4",
        "--kv-cache-gib",
        "0.05",
    )
    run = start_bench(*arguments, "--cache-dir", str(tmp_path / "cache"), directory=tmp_path)
    said, errors = run.communicate()
    # lines of the progress do not count
    assert (run.returncode, errors.count("\n")) == (
        0,
        errors.count(" tokens/s, "),
    )
    assert "3/3, 0 running" in errors
    assert "ouzel-demo in this process: 3 requests" in said
    result: Mapping[str, Any] = json.loads((tmp_path / "result.json").read_bytes())
    assert (result["completed"], result["total_output_tokens"]) == (3, 12)


def test_files_are_written_though_nobody_reads_the_figures(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "no UTF-8: \udcff"
    directory.mkdir()
    arguments = ("--num-prompts", "4", "--output-len", "5")
    with (
        running_server() as server,
        start_bench("--url", server.url, *arguments, directory=directory) as run,
    ):
        assert run.stdout is not None
        run.stdout.readline()
        run.stdout.close()
    assert json.loads((directory / "result.json").read_bytes())["completed"] == 4


def test_ctrl_c_ends_with_the_figures_so_far(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    short = {"prompt": "ab", "output_tokens": 2}
    long = {"prompt": "x" * 3000, "output_tokens": 3000}
    prompts.write_text(f"{json.dumps(short)}\n{json.dumps(long)}\n")
    arguments = ("--dataset", str(prompts), "--warmup", "0", "--max-concurrency", "1")
    received_prompts.clear()  # prompts of other tests in this process
    with running_server({"step_s": 0.01}, engine_factory="create_recording_parrot") as server:
        run = start_bench("--url", server.url, *arguments, directory=tmp_path)
        while not any(len(prompt) > 3000 for prompt in received_prompts):
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        said, errors = run.communicate()
    assert (run.returncode, errors.count("\n")) == (130, errors.count(" tokens/s, "))
    assert "stopped before the end" in said
    result: Mapping[str, Any] = json.loads((tmp_path / "result.json").read_bytes())
    assert (result["completed"], result["failed"], result["generated_texts"]) == (1, 0, ["ab"])
    assert result["ouzel"]["is_stopped"] is True


def test_ctrl_c_ends_though_the_server_never_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run = start_bench(
            "--url", f"127.0.0.1:{silent.getsockname()[1]}", "--model", "m", directory=tmp_path
        )
        connection, _ = silent.accept()
        with connection:
            connection.recv(1)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate()
    assert (run.returncode, errors) == (130, "")
