"""Commands end in order even if a standard stream is closed, full or broken."""

import subprocess
import sys

import pytest

OUZEL = f"{sys.executable} -m ouzel"


def run_in_shell(line: str) -> tuple[int, str]:
    """Runs a line in a shell; returns its status and standard error."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    assert run_in_shell(f"{OUZEL} completion bash | true") == (1, "")


@pytest.mark.parametrize(
    ("line", "status", "complaint"),
    [
        ("chat --url http://127.0.0.1:1 <&-", 2, "-p: must have a text"),
        ("rm --stale --cache-dir /nowhere <&-", 0, ""),
        ("completion bash >&-", 0, ""),
        ("completion csh 2>&-", 2, ""),
    ],
)
def test_a_stream_that_is_closed_is_an_empty_one(line: str, status: int, complaint: str) -> None:
    found, errors = run_in_shell(f"{OUZEL} {line}")
    assert found == status
    assert complaint in errors
    assert "Traceback" not in errors


def test_a_full_disk_is_reported() -> None:
    assert run_in_shell(f"{OUZEL} completion bash > /dev/full") == (
        1,
        "ouzel: the output cannot be written: No space left on device\n",
    )
