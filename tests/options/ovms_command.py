"""Runs command lines of OpenVINO Model Server through `ouzel serve --profile ovms`."""

from collections.abc import Mapping

import pytest

from ouzel.cli.app import main
from tests.serve.running import run_to_its_end


def run_ovms(command: str, output: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Runs `ovms ...` in this process; words of the command have no blanks.

    Returns the exit status, the lines of the output, and the errors.
    """
    program, *arguments = command.split()
    assert program == "ovms"
    status = main(["serve", "--profile", "ovms", "--log-level", "error", *arguments])
    written = output.readouterr()
    return status, written.out.splitlines(), written.err


def run_ovms_alone(command: str, env: Mapping[str, str]) -> tuple[int, list[str], str]:
    """Runs the command in a fresh process, because the hub's library reads the environment once."""
    program, *arguments = command.split()
    assert program == "ovms"
    process = run_to_its_end(
        "--profile", "ovms", "--log-level", "error", *arguments, environment=env
    )
    assert "Traceback" not in process.stderr
    return process.returncode, process.stdout.splitlines(), process.stderr
