"""Jobs end by themselves or by their limits, and none of them hurts another."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ouzel.limited_process import (
    ChildDied,
    JobEnded,
    JobFailed,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from tests.tries import holds_in_a_try

FACTORY = "tests.limited_process.jobs:create"
LIMITS = Limits(wall_s=600, cpu_s=600, memory_bytes=64 * 2**20)
# Limits for jobs that end in no other way. On a busy machine, other jobs need more time.
BRIEF = replace(LIMITS, cpu_s=0.3)


@pytest.fixture(scope="module", autouse=True)
def _importable_jobs() -> Iterator[None]:
    """The child imports nothing from the working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        yield


@pytest.fixture(scope="module")
def process() -> Iterator[LimitedProcess]:
    process = LimitedProcess(FACTORY, {"greeting": "Hello"}, LIMITS)
    yield process
    process.close()


def test_jobs_begin_with_what_the_factory_built(process: LimitedProcess) -> None:
    assert process.run(b"greet you") == b"Hello, you: 1"


def test_one_process_runs_many_jobs(process: LimitedProcess) -> None:
    assert {process.run(b"greet you")[:12] for _ in range(500)} == {b"Hello, you: "}


def test_long_jobs_and_results_go_through(process: LimitedProcess) -> None:
    assert process.run(b"repeat 9000000") == b"x" * 9_000_000
    with pytest.raises(JobFailed, match=r"^no such job: y{1000}"):
        process.run(b"y" * 3_000_000)


@pytest.mark.parametrize(
    ("job", "ended", "message"),
    [
        (b"spin", TimeLimitExceeded, "takes too long"),
        (b"grow", MemoryLimitExceeded, "takes too much memory"),
        (b"abort", MemoryLimitExceeded, "takes too much memory"),
        (b"crash", ChildDied, "ended with SIGSEGV"),
        (b"kill 9", JobLost, "ended with SIGKILL"),
        (b"exit 0", JobLost, "ended with exit status 0"),
        (b"dance", JobFailed, "^no such job: dance$"),
    ],
)
def test_a_job_without_a_result_says_why(
    process: LimitedProcess, job: bytes, ended: type[JobEnded], message: str
) -> None:
    with pytest.raises(ended, match=message):
        process.run(job, BRIEF if job == b"spin" else LIMITS)
    assert process.run(b"greet you").startswith(b"Hello, you: ")


def test_a_job_that_waits_ends_as_well(process: LimitedProcess) -> None:
    with pytest.raises(TimeLimitExceeded) as ended:
        process.run(b"sleep", Limits(wall_s=0.1, memory_bytes=2**26))
    assert not ended.value.is_cpu_time


def test_a_job_writes_no_larger_file_than_its_limit(process: LimitedProcess) -> None:
    small = replace(LIMITS, max_file_bytes=1000)

    assert process.run(b"store 1000", small) == b"stored"
    with pytest.raises(JobFailed, match="File too large"):
        process.run(b"store 1001", small)
    assert process.run(b"store 1001") == b"stored"


def test_jobs_at_the_same_time_keep_apart(process: LimitedProcess) -> None:
    with ThreadPoolExecutor(8) as threads:
        spinning = [threads.submit(process.run, b"spin", BRIEF) for _ in range(4)]
        greetings = [threads.submit(process.run, b"greet %d" % number) for number in range(10, 30)]
        assert [each.result()[:10] for each in greetings] == [
            b"Hello, %d:" % number for number in range(10, 30)
        ]
        assert [type(each.exception()) for each in spinning] == [TimeLimitExceeded] * 4


def test_the_template_is_replaced_when_it_dies() -> None:
    before = set(psutil.Process().children())
    process = LimitedProcess(FACTORY, {"greeting": "Hello"}, LIMITS)
    process.run(b"greet you")
    (template,) = set(psutil.Process().children()) - before
    os.kill(template.pid, signal.SIGKILL)
    template.wait()

    assert process.run(b"greet you") == b"Hello, you: 1"
    process.close()


@pytest.mark.parametrize("stopped", ["the template", "an idle process", "a process at its job"])
def test_a_stopped_process_holds_no_job_beyond_its_time(stopped: str) -> None:
    before = set(psutil.Process().children())
    process = LimitedProcess(FACTORY, {"greeting": "Hello"}, LIMITS, grace_s=2)
    process.run(b"greet you")
    (template,) = set(psutil.Process().children()) - before
    (idle,) = template.children()
    with ThreadPoolExecutor(1) as threads:
        if stopped == "a process at its job":
            running = threads.submit(process.run, b"sleep", replace(LIMITS, wall_s=1))
            while idle.num_threads() == 1:  # the job has a thread of its own
                assert not running.done()
        (template if stopped == "the template" else idle).suspend()
        if stopped != "a process at its job":
            running = threads.submit(process.run, b"greet you")
        assert isinstance(running.exception(), JobLost)

    assert process.run(b"greet you") == b"Hello, you: 1"
    assert stopped != "a process at its job" or psutil.wait_procs([idle])[1] == []
    process.close()


def test_a_process_that_casts_off_its_limits_is_ended_and_no_other_that_it_names() -> None:
    """The file of an earlier job may have taken over the process."""
    process = LimitedProcess("tests.limited_process.jobs:create_hostile", {}, LIMITS, grace_s=2)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        before = set(psutil.Process().children())
        process.run(str(bystander.pid).encode())
        (template,) = set(psutil.Process().children()) - before
        family = [template, *template.children()]

        with pytest.raises(JobLost):
            process.run(b"hang", replace(LIMITS, wall_s=1))

        assert bystander.poll() is None
        assert psutil.wait_procs(family)[1] == []
        bystander.communicate(b"\n")
    process.close()


def test_a_process_that_is_killed_before_it_begins_loses_its_job_alone() -> None:
    assert holds_in_a_try(a_killed_process_loses_its_job)


def a_killed_process_loses_its_job() -> bool:
    """Kills a process that has not begun its job; tells whether only this job was lost.

    The template holds a file for each job. On a busy machine it may still hold the file of the
    first job when this function counts the files. Then the function does not notice the second job,
    and kills nothing in time.
    """
    before = set(psutil.Process().children())
    process = LimitedProcess(FACTORY, {"greeting": "Hello"}, LIMITS)
    process.run(b"greet you")
    (template,) = set(psutil.Process().children()) - before
    (idle,) = template.children()
    num_files = template.num_fds()
    for _ in range(50):
        time.sleep(0.002)
        num_files = min(num_files, template.num_fds())
    idle.suspend()
    with ThreadPoolExecutor(1) as threads:
        lost = threads.submit(process.run, b"greet you")
        with suppress(psutil.NoSuchProcess):
            while template.num_fds() <= num_files and not lost.done():
                pass
            idle.kill()
        is_lost = isinstance(lost.exception(), JobLost)
    is_well = process.run(b"greet you") == b"Hello, you: 1" and template.is_running()
    process.close()
    return is_lost and is_well


def test_no_file_more_is_no_fault_of_the_job(process: LimitedProcess) -> None:
    process.run(b"greet you")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(JobLost, match="Too many open files"):
            process.run(b"greet you")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_factory_that_fails_fails_its_jobs() -> None:
    process = LimitedProcess("tests.limited_process.jobs:create_broken", {}, LIMITS)
    for _ in range(2):
        with pytest.raises(JobLost):
            process.run(b"greet you")
    process.close()


def test_closing_ends_what_runs() -> None:
    process = LimitedProcess(FACTORY, {"greeting": "Hello"}, LIMITS)
    process.run(b"greet you")
    with ThreadPoolExecutor(1) as threads:
        sleeping = threads.submit(process.run, b"sleep")
        while not any(each.children() for each in psutil.Process().children()):
            assert not sleeping.done()
        process.close()
        assert isinstance(sleeping.exception(), JobLost)
    with pytest.raises(JobLost, match="stopping"):
        process.run(b"greet you")


def test_what_native_code_writes_is_logged_for_debugging_in_the_logs_form() -> None:
    script = f"""
import sys
from ouzel.limited_process import LimitedProcess, Limits
from ouzel.observability import configure_logging
configure_logging(sys.argv[1], "json")
limits = Limits(wall_s=600, memory_bytes=2**26)
process = LimitedProcess({FACTORY!r}, {{"greeting": "Hello"}}, limits)
process.run(b"write memory allocation failed")
process.close()
"""
    written = {}
    for level in ("debug", "info"):
        arguments = [sys.executable, "-c", script, level]
        written[level] = subprocess.run(
            arguments, capture_output=True, check=True, text=True
        ).stderr

    assert [json.loads(line)["message"] for line in written["debug"].splitlines()] == [
        "standard error of a job: memory allocation failed"
    ]
    assert written["info"] == ""


def test_nothing_outlives_a_parent_that_is_killed() -> None:
    script = f"""
import threading
from ouzel.limited_process import LimitedProcess, Limits
limits = Limits(wall_s=600, memory_bytes=2**26)
process = LimitedProcess({FACTORY!r}, {{"greeting": "Hello"}}, limits)
process.run(b"greet you")
threading.Thread(target=process.run, args=(b"sleep",)).start()
print("begun", flush=True)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.readline()
    family: list[psutil.Process] = []
    while len(family) < 2:
        family = psutil.Process(parent.pid).children(recursive=True)
    parent.kill()
    parent.communicate()

    assert psutil.wait_procs(family)[1] == []
