"""Runs `ouzel bench`: measures a server or a model in this process, and compares results."""

import os
import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import uvloop

from ouzel import __version__
from ouzel.bench.benchmark import Outcome, Plan, benchmark
from ouzel.bench.comparison import comparison_text, describe_load, pair_runs
from ouzel.bench.dataset import read_dataset
from ouzel.bench.endpoints import Form
from ouzel.bench.figures import compute_figures
from ouzel.bench.flags import BenchFlags, bench_flags, read_bench_flags
from ouzel.bench.goodput import Limits, read_limits
from ouzel.bench.machine import machine_facts
from ouzel.bench.report.page import comparison_page, report_page
from ouzel.bench.result import (
    Circumstances,
    InvalidResult,
    Result,
    build_result,
    read_results,
    write_results,
)
from ouzel.bench.run import unless_stopped
from ouzel.bench.summary import printable, summary, sweep_summary
from ouzel.bench.target import Target, served_model, server_facts
from ouzel.bench.workloads import Shape
from ouzel.client.base import ApiClient
from ouzel.client.shown_url import shown_url
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import known_flags
from ouzel.serve.signals import stop_signals
from ouzel.terminal.harmless import whole_characters
from ouzel.terminal.suggestion import did_you_mean

_NUM_PROMPTS = 32
_NUM_OTHER_FILES = 32  # open files that are not connections
_STOPPED = 130  # exit status of a program that Ctrl-C has ended
# Options with secrets -> the function that hides the secret in a value.
_SECRET: Mapping[str, Callable[[str], str]] = {"--api-key": lambda _: "…", "--url": shown_url}


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status. Raises OuzelError."""
    flags, rest = read_bench_flags(arguments)
    if flags.compare:
        return _compare(flags)
    plan = _plan(flags)
    opening = _connect(flags, plan, rest) if flags.url else _open_model(rest)
    return uvloop.run(_run(flags, plan, opening, command_line=_hide_secrets(arguments)))


def _plan(flags: BenchFlags) -> Plan:
    """Makes the plan from the options; reads the dataset, if there is one. Raises OuzelError."""
    lines = read_dataset(Path(flags.dataset)) if flags.dataset else []
    if flags.endpoint.name == "completions" and any(line.messages for line in lines):
        raise InvalidOption(
            f"--dataset {flags.dataset}: must have prompt in each line with --endpoint "
            "completions, given a line with messages"
        )
    try:
        limits = read_limits(flags.goodput)
    except ValueError as error:
        raise InvalidOption(f"--goodput: {error}") from error
    shape = Shape(
        workload=flags.workload,
        num_requests=flags.num_prompts or len(lines) or _NUM_PROMPTS,
        input_lens=flags.input_len,
        output_lens=flags.output_len,
        prefix_len=flags.prefix_len,
        num_prefixes=flags.num_prefixes,
        num_turns=flags.turns,
    )
    return Plan(shape, tuple(lines), flags.loads(), flags.warmup, flags.seed, limits)


def _connect(
    flags: BenchFlags, plan: Plan, rest: Sequence[str]
) -> AbstractAsyncContextManager[ApiClient]:
    """Checks the options for a server and makes the context of the client. Raises OuzelError."""
    from ouzel.client.http_client import HttpClient, tls_context  # noqa: PLC0415  only with --url
    from ouzel.serve.descriptors import raise_limit  # noqa: PLC0415  only with --url

    if rest:
        raise InvalidOption(_describe_unknown(rest[0]))
    tls = tls_context(ca_file=flags.ca_file, verifies=not flags.insecure)
    _check_connections(plan, raise_limit())
    api_key = flags.api_key or os.environ.get("OPENAI_API_KEY", "")

    @asynccontextmanager
    async def opened() -> AsyncGenerator[ApiClient, None]:
        client = HttpClient(flags.url, api_key=api_key, tls=tls)
        try:
            yield client
        finally:
            await client.close()

    return opened()


# Flags of other benchmark programs -> flags of this program.
_OTHER_NAMES = {
    "--num-requests": "--num-prompts",
    "--request-count": "--num-prompts",
    "--concurrency": "--max-concurrency",
    "--rate": "--request-rate",
}


def _describe_unknown(argument: str) -> str:
    """Returns the error for an argument that `ouzel bench --url` does not know."""
    if not argument.startswith("-"):
        return (
            f"{argument}: use --model for the model of a server; "
            "ouzel bench --help lists all options"
        )
    flag = argument.partition("=")[0]
    if flag in known_flags():
        return f"{flag}: is an option for a model in this process, and cannot be used with --url"
    other = _OTHER_NAMES.get(flag)
    near = f"; did you mean {other}?" if other else did_you_mean([flag], bench_flags())
    return f"unknown option {flag}{near or '; ouzel bench --help lists all options'}"


def _check_connections(plan: Plan, num_files: int) -> None:
    """Raises InvalidOption if the requests at once need more connections than the system allows."""
    most = num_files - _NUM_OTHER_FILES
    at_once = max(min(load.max_concurrency or 0, plan.shape.num_requests) for load in plan.loads)
    if at_once > most:
        reason = f"because of the limit of {num_files} open files (ulimit -n)"
        raise InvalidOption(f"requests at once must be <= {most} {reason}, given {at_once}")


def _open_model(rest: Sequence[str]) -> AbstractAsyncContextManager[ApiClient]:
    """Reads the options of the model and makes the context of its app. Raises OuzelError."""
    from ouzel.serve import in_process_app as app  # noqa: PLC0415  only without --url

    options, local = app.read_own_model(rest, command="bench", other_flags=bench_flags())
    return app.in_process_app(options, local)


async def _run(
    flags: BenchFlags,
    plan: Plan,
    opening: AbstractAsyncContextManager[ApiClient],
    *,
    command_line: str,
) -> int:
    async with opening as client:
        model = flags.model or (await served_model(client))["id"]
        stopping, _ = stop_signals()
        place = f"at {shown_url(flags.url)}" if flags.url else "in this process"
        _say(f"{printable(model)} {place}: {_describe_workload(plan, flags)}\n")
        # Before the measurement, because a user may stop a server that does not answer any more.
        facts = await unless_stopped(stopping, server_facts(client, model)) or {}
        target = Target(client, flags.endpoint, model, Form(), flags.extra_body)
        outcome = await benchmark(target, plan, stopping=stopping, terminal=sys.stderr)
    own_fields = {
        "version": __version__,
        "command_line": command_line,
        "url": shown_url(flags.url),
        "endpoint": flags.endpoint.path,
        "workload": _describe_workload(plan, flags),
        "seed": plan.seed,
        "goodput": None if plan.limits is None else str(plan.limits),
        "remarks": outcome.remarks,
        "machine": machine_facts(),
        "server": facts,
    }
    circumstances = Circumstances(flags.endpoint.backend, model, own_fields)
    return _report(flags, outcome, plan.limits, circumstances)


def _describe_workload(plan: Plan, flags: BenchFlags) -> str:
    shape = plan.shape
    if plan.dataset:
        return f"{shape.num_requests} requests of {flags.dataset}"
    lengths = f"input {shape.input_lens}, output {shape.output_lens}"
    return f"{shape.num_requests} requests, {shape.workload}, {lengths}"


def _report(
    flags: BenchFlags, outcome: Outcome, limits: Limits | None, circumstances: Circumstances
) -> int:
    """Writes the files of --save and --report, prints the results, and returns the exit status."""
    results = [
        build_result(run, compute_figures(run.measurements, run.duration_s, limits), circumstances)
        for run in outcome.runs
    ]
    if not results:
        return _STOPPED
    # The files come first, because printing fails if a pipe is closed; printing follows anyway.
    try:
        _save(flags, results)
    finally:
        _show(results, outcome.remarks)
    if outcome.is_stopped:
        return _STOPPED
    return 0 if any(result["completed"] for result in results) else 1


def _save(flags: BenchFlags, results: Sequence[Result]) -> None:
    """Writes the files of --save and --report. Raises InvalidResult."""
    if flags.save:
        write_results(Path(flags.save), results)
    if flags.report:
        _write_page(flags.report, report_page(results))


def _show(results: Sequence[Result], remarks: Sequence[str]) -> None:
    for result in results:
        heading = f"\n{describe_load(result)}\n\n" if len(results) > 1 else "\n"
        _say(heading + summary(result))
    if len(results) > 1:
        _say("\n" + sweep_summary(results))
    for remark in remarks:
        _say(f"\nNote: {printable(remark)}\n")


def _compare(flags: BenchFlags) -> int:
    first, second = (read_results(Path(path)) for path in flags.compare)
    pairs = pair_runs(first, second)
    _say(f"A: {flags.compare[0]}\nB: {flags.compare[1]}\n")
    for a, b in pairs:
        heading = "\n"
        if len(pairs) > 1 or describe_load(a) != describe_load(b):
            heading = f"\n{describe_load(a)} / {describe_load(b)}\n"
        _say(heading + comparison_text(a, b))
    if flags.report:
        names = (flags.compare[0], flags.compare[1])
        _write_page(flags.report, comparison_page(pairs, names=names))
    return 0


def _write_page(path: str, page: str) -> None:
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidResult(f"{path}: {error.strerror}") from error


def _hide_secrets(arguments: Sequence[str]) -> str:
    """Returns the command line without the API key and without a password in the URL."""
    shown: list[str] = []
    for before, argument in zip(("", *arguments), arguments, strict=False):
        flag, mark, value = argument.partition("=")
        if before in _SECRET:
            shown.append(_SECRET[before](argument))
        else:
            shown.append(f"{flag}={_SECRET[flag](value)}" if mark and flag in _SECRET else argument)
    # File names may have bytes that are no characters.
    return whole_characters(shlex.join(["ouzel", "bench", *shown]))


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
