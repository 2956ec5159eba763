"""Runs `ouzel bench` as a user does: workloads, endpoints, files and refusals."""

import asyncio
import json
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON

import pytest

from ouzel.cli.app import main
from ouzel.config import ServerConfig
from tests.api.serving import RunningServer, running_server
from tests.cli.bench_processes import start_bench
from tests.client.canned_server import canned_server

pytestmark = pytest.mark.serves

SMALL = (
    "--num-prompts",
    "4",
    "--input-len",
    "10:20",
    "--output-len",
    "5",
    "--max-concurrency",
    "2",
)
FIELDS = """
date endpoint_type backend label model_id tokenizer_id num_prompts request_rate burstiness
max_concurrency duration
completed failed total_input_tokens total_output_tokens request_throughput request_goodput
output_throughput
total_token_throughput max_output_tokens_per_s max_concurrent_requests input_lens output_lens
ttfts itls start_times
generated_texts errors
"""  # fields of `vllm bench serve`
STATISTICS = ("mean", "median", "std", "p50", "p90", "p95", "p99")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


def run_bench(
    server: RunningServer, directory: Path, *arguments: str, small: tuple[str, ...] = SMALL
) -> Any:
    """Runs the command, which succeeds, and returns the saved result."""
    saved = directory / "result.json"
    assert main(["bench", "--url", server.url, "--save", str(saved), *small, *arguments]) == 0
    return json.loads(saved.read_bytes())


def run_refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Returns the exit status and the single line of the error."""
    try:
        status = main(["bench", *arguments])
    except SystemExit as error:  # argparse raises it
        status = int(str(error.code))
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return status, said


# Each workload and each endpoint runs once, because they do not depend on each other.
@pytest.mark.parametrize(
    ("endpoint", "workload"),
    [("chat", "multi-turn"), ("completions", "random"), ("responses", "shared-prefix")],
)
def test_every_workload_and_every_endpoint(
    server: RunningServer, tmp_path: Path, endpoint: str, workload: str
) -> None:
    prefix = ("--prefix-len", "30") if workload == "shared-prefix" else ()
    result = run_bench(server, tmp_path, "--endpoint", endpoint, "--workload", workload, *prefix)
    assert (result["completed"], result["failed"], result["errors"]) == (4, 0, [""] * 4)
    assert result["output_lens"] == [5] * 4
    assert result["total_output_tokens"] == 20
    assert all(ttft > 0 for ttft in result["ttfts"])


def test_the_result_has_the_fields_of_vllm(server: RunningServer, tmp_path: Path) -> None:
    result = run_bench(server, tmp_path, "--goodput", "ttft:1e6", "e2el:1e6")
    times = [
        f"{statistic}_{name}_ms"
        for name in ("ttft", "tpot", "itl", "e2el")
        for statistic in STATISTICS
    ]
    assert result.keys() == {*FIELDS.split(), *times, "ouzel"}
    assert (result["backend"], result["model_id"], result["request_rate"]) == (
        "openai-chat",
        "org/parrot",
        "inf",
    )
    assert result["request_goodput"] == result["request_throughput"]
    assert result["mean_ttft_ms"] <= result["mean_e2el_ms"]
    assert "--goodput ttft:1e6 e2el:1e6" in result["ouzel"]["command_line"]


@pytest.mark.release("benchmarks of a command: sweeps, seeds, passwords")
def test_the_same_seed_sends_the_same_requests(server: RunningServer, tmp_path: Path) -> None:
    first, again, other = (
        run_bench(server, tmp_path, "--seed", seed)["generated_texts"] for seed in ("1", "1", "2")
    )
    assert sorted(first) == sorted(again) != sorted(other)


@pytest.mark.release("benchmarks of a command: sweeps, seeds, passwords")
def test_a_sweep_has_a_run_for_each_load(
    server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.html"
    small = ("--num-prompts", "3", "--input-len", "9", "--output-len", "4", "--report", str(report))
    results = run_bench(server, tmp_path, "--sweep", "rate:50,100", small=small)
    assert [each["request_rate"] for each in results] == [50, 100]
    assert [each["completed"] for each in results] == [3, 3]
    assert results[0]["generated_texts"] != results[1]["generated_texts"]
    assert "TTFT p50" in capsys.readouterr().out
    assert report.read_text().count("<svg") == 8


def test_prompts_of_a_file(server: RunningServer, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(
        '{"prompt": "abc", "output_tokens": 3}\n'
        '{"messages": [{"role": "user", "content": "defg"}]}\n'
    )
    result = run_bench(server, tmp_path, "--dataset", str(path), "--output-len", "4", small=())
    assert sorted(result["generated_texts"]) == ["abc", "defg"]


def test_two_results_are_compared(
    server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_bench(server, tmp_path)
    saved, report = str(tmp_path / "result.json"), tmp_path / "report.html"
    capsys.readouterr()
    assert main(["bench", "--compare", saved, saved, "--report", str(report)]) == 0
    assert "1.000" in capsys.readouterr().out
    assert "<svg" in report.read_text()


def test_a_comparison_of_two_loads_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, limit in (("a", 1), ("b", 8)):
        (tmp_path / name).write_text(
            json.dumps({"request_throughput": 1.0, "max_concurrency": limit})
        )
    assert main(["bench", "--compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "1 at once / 8 at once" in capsys.readouterr().out


def test_failures_are_counted_and_the_first_ones_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "abc"}\n{"prompt": "a|fail|b"}\n')
    with running_server() as server:
        result = run_bench(server, tmp_path, "--dataset", str(path), small=())
    assert (result["completed"], result["failed"]) == (1, 1)
    assert "failed 1 times: " in capsys.readouterr().out


def test_a_key_is_sent_and_never_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_server(config=ServerConfig(api_key=("sesame",))) as server:
        assert run_refused(capsys, "--url", server.url)[0] == 1
        saved = json.dumps(run_bench(server, tmp_path, "--api-key", "sesame"))
    assert "sesame" not in saved + capsys.readouterr().out


@pytest.mark.release("benchmarks of a command: sweeps, seeds, passwords")
@pytest.mark.parametrize("form", ["--url={}", "--url {}"])
def test_a_password_in_the_url_is_never_shown(
    server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    saved, report = tmp_path / "result.json", tmp_path / "report.html"
    url = server.url.replace("://", "://admin:se%40same@")
    arguments = (*form.format(url).split(), "--save", str(saved), "--report", str(report))
    assert main(["bench", *SMALL, *arguments]) == 0
    shown = saved.read_text() + report.read_text() + capsys.readouterr().out
    assert "same" not in shown
    assert url.replace("admin:se%40same@", "…@") in shown


def test_more_connections_than_a_shell_allows_by_itself(
    server: RunningServer, tmp_path: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        run_bench(server, tmp_path)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 2**20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_requests_at_once_than_descriptors_are_refused(tmp_path: Path) -> None:
    with_few_files = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh")
    arguments = ("--url", "x", "--num-prompts", "99", "--sweep", "concurrency:1,99")
    _, errors = start_bench(*arguments, directory=tmp_path, wrapper=with_few_files).communicate()
    assert errors.startswith(
        "ouzel: requests at once must be <= 32 because of the limit of 64 open files"
    )


def test_a_server_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    status, said = run_refused(capsys, "--url", f"localhost:{port}")
    assert status == 1
    assert f"http://localhost:{port}: the server cannot be reached" in said


async def test_a_servers_reason_of_a_refusal_is_one_line_without_controls(tmp_path: Path) -> None:
    page = b"<html>\n<title>\x1b[31mBad gateway</title>\n</html>\n"
    async with canned_server(
        b"HTTP/1.1 502 No\r\ncontent-length: %d\r\n\r\n%s" % (len(page), page)
    ) as server:
        run = await asyncio.to_thread(
            start_bench, "--url", server.url, "--model", "m", directory=tmp_path
        )
        _, errors = await asyncio.to_thread(run.communicate)
    assert errors == "ouzel: 502: <html>␊<title>␛[31mBad gateway</title>␊</html>\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--url", "x", "--input-len", "0"), "--input-len: lengths must be 1 to"),
        (
            ("--url", "x", "--num-prompts", "0"),
            "--num-prompts: must be a whole number >= 1, given '0'",
        ),
        (("--url", "x", "--request-rate", "-1"), "--request-rate: must be a number > 0"),
        (("--url", "x", "--request-rate", "nan"), "given 'nan'"),
        (
            ("--url", "x", "--endpoint", "chats"),
            "--endpoint: must be one of chat, completions, responses, given 'chats'",
        ),
        (("--url", "x", "--workload", "idle"), "--workload: must be one of random"),
        (("--url", "x", "--goodput", "itl:5"), "--goodput: must be one or more of"),
        (("--url", "x", "--sweep", "rate"), "--sweep: must be rate:R,R,..."),
        (("--url", "x", "--sweep", "rate:1,b"), "--sweep: must be a number > 0"),
        (("--url", "x", "--extra-body", "[]"), "--extra-body: must be a JSON object, given '[]'"),
        (("--url", "x", "--prefix-len", "5"), "--prefix-len: needs --workload shared-prefix"),
        (("--url", "x", "--turns", "5"), "--turns: needs --workload multi-turn"),
        (("--url", "x", "--burstiness", "5"), "--burstiness: needs --request-rate"),
        (
            ("--url", "x", "--sweep", "rate:1", "--request-rate", "1"),
            "--request-rate: cannot be used with --sweep rate:...",
        ),
        (
            ("--url", "x", "--sweep", "concurrency:1", "--max-concurrency", "1"),
            "--max-concurrency: cannot be used with --sweep",
        ),
        (
            ("--url", "x", "--dataset", "d", "--input-len", "5"),
            "--input-len: cannot be used with --dataset, which has the prompts",
        ),
        (("--url", "x", "--dataset", "/none.jsonl"), "/none.jsonl: No such file"),
        (
            ("--url", "x", "--workload", "tools", "--endpoint", "completions"),
            "--workload: tools cannot be used with --endpoint completions",
        ),
        (
            ("--url", "x", "--save", "/none/a.json"),
            "--save: must be a file in an existing, writable directory",
        ),
        (
            ("--url", "x", "--save", "/dev/null", "--report", "/dev/null"),
            "--report: must be another file than --save",
        ),
        (
            ("--url", "x", "--dataset", "/dev/null", "--save", "/dev/null"),
            "must be another file than /dev/null",
        ),
        (
            ("--compare", "a", "/dev/null", "--report", "/dev/null"),
            "--report: must be another file than /dev/null",
        ),
        (
            ("--url", "x", "--insecure", "--ca-file", "c"),
            "--ca-file: has no effect with --insecure",
        ),
        (("--url", "ftp://x"), "the URL of a server must be like"),
        (("--url", "x", "some/model"), "some/model: use --model for the model of a server"),
        (("--url", "x", "--device", "CPU"), "--device: is an option for a model in this process"),
        (("--api-key", "k"), "--api-key: needs --url"),
        (("--num-promts", "5"), "unknown option --num-promts; did you mean --num-prompts"),
        (("--port", "5"), "--port: is an option of ouzel serve"),
        (
            ("--compare", "a.json", "b.json", "--seed", "1"),
            "--seed: cannot be used with --compare",
        ),
        (("--compare", "/none/a.json", "b.json"), "/none/a.json: No such file"),
    ],
)
def test_impossible_arguments_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    status, line = run_refused(capsys, *arguments)
    assert status in (1, 2)
    assert said in line


def test_help_names_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "-h"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert all(flag in said for flag in ("--url", "--workload", "--sweep", "--compare"))
