"""A run of tests survives the death of its processes and reports it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.work_groups import WorkerDeaths

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerDeaths())
"""
PASSES = """
import pytest

@pytest.mark.parametrize("number", range(6))
def test_passes(number): pass
"""
DIES = """
import os, pytest, signal

@pytest.mark.parametrize("number", range(6))
def test_dies(number):
    if number in (1, 4):
        os.kill(os.getpid(), signal.SIGFPE)
"""
DIES_AT_ITS_END = """
import os, pytest, signal
from pathlib import Path

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput") and not Path("has_died").exists():
        Path("has_died").touch()
        os.kill(os.getpid(), signal.SIGFPE)
"""


def run(directory: Path, config: pytest.Config, **files: str) -> tuple[int, list[str]]:
    """Runs pytest with the options of our own runs; returns the exit status and the lines."""
    for name, text in {"conftest": CONFTEST, **files}.items():
        (directory / f"{name}.py").write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = nothing\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "xdist.plugin",
        *config.getini("addopts"),
        "-n",
        "2",
    ]
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    environment = inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_a_dead_process_fails_only_its_current_test(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    files = {"test_a": DIES, "test_b": DIES, "test_c": PASSES, "test_d": PASSES}
    status, lines = run(tmp_path, pytestconfig, **files)

    deadly = [f"test_{name}.py::test_dies[{number}]" for name in "ab" for number in (1, 4)]
    assert status == pytest.ExitCode.TESTS_FAILED, "\n".join(lines)
    failed = [line for line in lines if line.startswith("FAILED")]
    assert sorted(line.partition(" - ")[0].removeprefix("FAILED ") for line in failed) == deadly
    assert "4 failed, 20 passed" in lines[-1]
    died = lines[next(at for at, line in enumerate(lines) if "processes that died" in line) + 1 :][
        : len(deadly)
    ]
    assert sorted(line.partition(" died in ")[2] for line in died) == deadly


def test_a_process_that_dies_outside_of_tests_fails_the_run(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    status, lines = run(
        tmp_path, pytestconfig, conftest=CONFTEST + DIES_AT_ITS_END, test_a=PASSES, test_b=PASSES
    )

    assert "12 passed" in lines[-1]
    assert any(line.endswith("died outside of any test") for line in lines)
    assert status == pytest.ExitCode.TESTS_FAILED
