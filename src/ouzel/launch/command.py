"""Runs `ouzel launch`: writes the settings of a client, prints them and starts the client."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ouzel.client.base import ApiFailure
from ouzel.client.shown_url import shown_url
from ouzel.launch.client import Client, LaunchError, Setup, Target
from ouzel.launch.flags import LaunchFlags, read_flags
from ouzel.launch.own_server import served_target
from ouzel.launch.settings_files import find_directory, write_files
from ouzel.launch.shown import show_files, show_setup, write_lines
from ouzel.launch.table import CLIENTS
from ouzel.launch.target import find_target, is_answered
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.harmless import harmless_line


def run(arguments: Sequence[str]) -> int:
    """Starts the client, or prints its settings; returns the exit status. Raises OuzelError."""
    flags = read_flags(arguments)
    client, directory = CLIENTS[flags.client], find_directory(flags.client, os.environ)
    program = _find_program(client) if flags.starts else client.program
    with _target(flags, directory) as target:
        setup = client.prepare(target, directory)
        command = [client.program, *setup.arguments, *flags.client_arguments]
        if flags.is_dry_run:
            sys.stdout.write(write_lines(show_files(directory, setup.files)))
            sys.stdout.write(write_lines(show_setup(target, setup, [], command)))
            return 0
        paths = write_files(
            directory, setup.files, lambda changed: flags.overwrites or _ask(changed)
        )
        lines = write_lines(show_setup(target, setup, paths, command))
        if flags.prints:
            sys.stdout.write(lines)
            return 0
        sys.stderr.write(lines)  # standard output belongs to the client
        return _run_client(program, command, _make_environment(setup, os.environ), flags)


def _find_program(client: Client) -> str:
    program = shutil.which(client.program)
    if program is None:
        raise LaunchError(
            f"{client.title} is not installed: there is no program {client.program}; install it "
            f"with: {client.installation}"
        )
    return program


@contextmanager
def _target(flags: LaunchFlags, directory: Path) -> Generator[Target, None, None]:
    if flags.serve:
        with served_target(flags, directory) as target:
            yield target
        return
    try:
        target = find_target(flags.url, model=flags.model, api_key=flags.api_key)
    except ApiFailure as failure:
        if is_answered(failure):
            raise
        raise LaunchError(
            f"no server answers at {shown_url(flags.url)} ({failure}); start one with: ouzel serve "
            "MODEL, or with the option --serve MODEL"
        ) from failure
    yield target


def _ask(changed: Sequence[Path]) -> bool:
    """Asks the user whether to replace the files. Raises InvalidOption without a terminal."""
    names = ", ".join(map(str, changed))
    if not sys.stdin.isatty():
        raise InvalidOption(
            f"--overwrite: is required without a terminal, because {names} was changed after ouzel "
            "launch wrote it"
        )
    sys.stderr.write(harmless_line(f"{names} was changed. Replace it? [y/N] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _make_environment(setup: Setup, own: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in own.items() if name not in setup.removed_variables}
    return {**kept, **setup.variables}


def _run_client(
    program: str, command: list[str], environment: Mapping[str, str], flags: LaunchFlags
) -> int:
    """Runs the client in place of this process, or as its child if this process has a server."""
    sys.stderr.flush()
    try:
        if not flags.serve:
            os.execve(program, command, environment)
        return _run_child(program, command, environment)
    except OSError as error:
        raise LaunchError(f"{program}: cannot be started: {error.strerror}") from error


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _run_child(program: str, command: list[str], environment: Mapping[str, str]) -> int:
    with subprocess.Popen(command, executable=program, env=environment) as process:
        # Ctrl-C reaches the client too, and the client decides whether it ends.
        before = {number: signal.getsignal(number) for number in _ENDING}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: process.terminate())
        status = process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
