"""A command line of OpenVINO Model Server behind `ouzel serve --profile ovms`, in this process."""

from collections.abc import Mapping

import pytest

from ouzel.cli.app import main
from tests.serve.running import run_to_its_end


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
    process = run_to_its_end(
        "--profile", "ovms", "--log-level", "error", *arguments, environment=env
    )
    assert "Traceback" not in process.stderr
    return process.returncode, process.stdout.splitlines(), process.stderr
