"""A command line of OpenVINO Model Server behind `ouzel serve --profile ovms`, in this process."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from ouzel.cli.app import main


def run_ovms(command: str, output: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Returns the exit status, the lines of the output and the errors of `ovms ...`, whose words have no blanks."""
    program, *arguments = command.split()
    assert program == "ovms"
    status = main(["serve", "--profile", "ovms", "--log-level", "error", *arguments])
    written = output.readouterr()
    return status, written.out.splitlines(), written.err


def run_ovms_alone(command: str, env: Mapping[str, str]) -> tuple[int, list[str], str]:
    """Does the same in a process of its own, with its environment: the hub's library reads that once."""
    program, *arguments = command.split()
    assert program == "ovms"
    process = subprocess.run(
        [sys.executable, "-m", "ouzel", "serve", "--profile", "ovms", "--log-level", "error", *arguments],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in process.stderr
    return process.returncode, process.stdout.splitlines(), process.stderr
