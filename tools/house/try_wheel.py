"""Installs a wheel into a fresh environment, serves the bundled model, and sends it a request.

    python -m tools.house.try_wheel WHEEL [--python 3.13]

The wheel of `ouzel-kernels` lies beside WHEEL. The program needs uv and the standard library, and
no package of this repository. It prints the size of the installed packages, the library of kernels
and the answer; it exits with 1 if a step fails.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

QUESTION = "What is 2 + 3?"


def install(wheel: Path, directory: Path, python: str) -> Path:
    """Installs the wheel into an environment at `directory`; returns the path of its `ouzel`."""
    subprocess.run(["uv", "venv", "--quiet", "--python", python, str(directory)], check=True)
    interpreter = directory / "bin" / "python"
    command = ["uv", "pip", "install", "--quiet", "--python", str(interpreter)]
    subprocess.run([*command, "--find-links", str(wheel.parent), str(wheel)], check=True)
    return directory / "bin" / "ouzel"


def load_kernels(python: Path) -> str:
    """Loads the library of `ouzel-kernels`, which must be there, and returns its name."""
    script = "import ctypes, ouzel_kernels as kernels; assert kernels.LIBRARY, kernels.REASON; "
    script += "ctypes.CDLL(str(kernels.LIBRARY)); print(kernels.LIBRARY.name)"
    command = [str(python), "-c", script]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def installed_bytes(directory: Path) -> int:
    """Returns the apparent size of the environment's packages, each hard link once."""
    [packages] = directory.glob("lib/python3*/site-packages")
    sizes = {}
    for path in packages.rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


@contextmanager
def serving(ouzel: Path, home: Path) -> Iterator[str]:
    """Starts the server on a free port, and yields its URL.

    Afterwards SIGTERM must end the server with the exit status 0.
    """
    command = [str(ouzel), "serve", "--port", "0", "--log-level", "warning"]
    command += ["--cache-dir", str(home / "cache"), "--data-dir", str(home / "data")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=home
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r" at (http://\S+/v1)", line):
                yield found[1]
                break
        else:
            sys.exit(f"ouzel serve ended with exit status {process.wait()} before it served")
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        if status := process.wait():
            sys.exit(f"ouzel serve must end with exit status 0 after SIGTERM, given {status}")
    finally:
        process.kill()
        process.wait()


def ask(url: str) -> str:
    """Sends one chat request, and returns the text of the answer."""
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 32, "temperature": 0}
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        answer = json.load(response)
    text: str = answer["choices"][0]["message"]["content"]
    if not text.strip():
        sys.exit(f"the answer has no text: {answer}")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument(
        "--python", default="3.11", help="a version that uv finds or downloads, or a path"
    )
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="ouzel-wheel-") as scratch:
        directory = Path(scratch) / "environment"
        ouzel = install(arguments.wheel, directory, arguments.python)
        ours, python = (
            subprocess.run(
                [str(ouzel.with_name(name)), "--version"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for name in ("ouzel", "python")
        )
        print(f"{ours} on {python}: {installed_bytes(directory) / 2**20:.0f} MiB installed")
        print(f"kernels: {load_kernels(ouzel.with_name('python'))}")
        with serving(ouzel, Path(scratch)) as url:
            print(f"{QUESTION} {ask(url)}")


if __name__ == "__main__":
    main()
