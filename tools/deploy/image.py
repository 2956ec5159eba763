"""Builds and starts the content of the image on a machine without a container tool.

    python -m tools.deploy.image [--extras "postgres otel"] [--keep DIRECTORY]

`deploy/image/build.sh` installs from the lock file, in a copy of the files that `.dockerignore`
allows. Then the command of the Containerfile runs with its environment and nothing else: as its
user, without capabilities, as process 1, on a root that is read-only except for the volumes and
/tmp. Its health check must pass, a chat must get an answer, and SIGTERM must end it with status 0.
This needs root, for the user and the mounts, on Linux.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tools.deploy.containerfile import PATH, ROOT, Image, read_image

PATH_OF_ALL = "/usr/local/bin:/usr/bin"  # an interpreter in a home directory is not for other users
METRICS_PORT = "9090"  # the image's default
CHAT = {"messages": [{"role": "user", "content": "What is 17 plus 25?"}], "max_tokens": 32}


class ImageError(Exception):
    """The image fails a check."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--extras", default="postgres otel", help="the value of EXTRAS in a build")
    parser.add_argument("--keep", metavar="DIRECTORY", help="install there, and leave it")
    options = parser.parse_args(arguments)
    # /tmp is the image's own.
    with tempfile.TemporaryDirectory(prefix="ouzel-image-", dir="/var/tmp") as temporary:
        directory = Path(temporary)
        directory.chmod(0o755)  # the image runs as another user
        prefix = Path(options.keep).absolute() if options.keep else directory / "opt"
        build(context=directory / "context", prefix=prefix, extras=options.extras)
        print(f"built: {_size(prefix) / 1e6:.0f} MB in {prefix}")
        for line in try_image(prefix, directory):
            print(line)
    return 0


def build(*, context: Path, prefix: Path, extras: str) -> None:
    """Runs the steps of the build stage: copies the files for a builder, and runs the script."""
    for pattern in (ROOT / ".dockerignore").read_text().splitlines():
        if pattern.startswith("!"):
            _copy(ROOT / pattern[1:], context / pattern[1:])
    subprocess.run(
        [context / "deploy" / "image" / "build.sh", prefix],
        env={
            **os.environ,
            "EXTRAS": extras,
            "PYTHON": shutil.which("python3", path=PATH_OF_ALL) or sys.executable,
        },
        check=True,
    )


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def try_image(prefix: Path, directory: Path) -> list[str]:
    """Starts the content of `prefix` as the Containerfile says, and returns a report.

    The volumes are in `directory`.
    """
    image = _relocate(read_image(PATH.read_text()), prefix, directory)
    for volume in image.volumes:
        Path(volume).mkdir()
        os.chown(volume, image.user_id, image.group_id)
    began = time.monotonic()
    process = subprocess.Popen(
        _contain(image, image.command),
        cwd="/",
        env=image.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_until_healthy(process, image)
        seen = [
            f"healthy after {time.monotonic() - began:.1f} s, as user {image.user_id}, "
            "on a read-only root"
        ]
        seen.append(f"answered: {_answer(image.environment['OUZEL_PORT'])}")
        os.kill(_only_child(process.pid), signal.SIGTERM)
        process.communicate()
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise ImageError(f"SIGTERM ended it with status {process.returncode}")
    strangers = {path for path in Path(prefix).rglob("*") if path.lstat().st_uid == image.user_id}
    if strangers:
        raise ImageError(f"it wrote into its installation directory: {sorted(strangers)[:3]}")
    return [*seen, "SIGTERM: status 0"]


def _relocate(image: Image, prefix: Path, directory: Path) -> Image:
    """Returns the image with directories of this machine in the place of its own."""

    def relocate(text: str) -> str:
        for volume in image.volumes:
            text = text.replace(volume, str(directory / volume[1:].replace("/", "-")))
        return text.replace(image.prefix, str(prefix))

    ports = {"OUZEL_PORT": _free_port(), "OUZEL_METRICS_PORT": _free_port()}
    environment = {name: relocate(value) for name, value in image.environment.items()} | ports
    check = (
        argument.replace(METRICS_PORT, ports["OUZEL_METRICS_PORT"])
        for argument in image.health_check[1:]
    )
    program = prefix / "bin" / image.command[0]
    return replace(
        image,
        environment=environment,
        volumes=tuple(map(relocate, image.volumes)),
        command=(str(program), *image.command[1:]),
        health_check=(str(prefix / "bin" / image.health_check[0]), *check),
    )


def _free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def _contain(image: Image, command: tuple[str, ...]) -> list[str]:
    """Returns the command as process 1 of a container.

    The process sees everything read-only, except for volumes and /tmp.
    """
    volumes = [shlex.quote(volume) for volume in image.volumes]
    script = [
        "set -e",
        "mount -t proc proc /proc",
        "mount -t tmpfs tmpfs /tmp",
        *(f"mount --bind {volume} {volume}" for volume in volumes),
        "mount -o remount,bind,ro /",
        'if touch /writable 2>/dev/null; then echo "the root can be written to" >&2; exit 1; fi',
        'exec "$@"',
    ]
    user = [
        "setpriv",
        f"--reuid={image.user_id}",
        f"--regid={image.group_id}",
        "--clear-groups",
        "--no-new-privs",
    ]
    user += ["--bounding-set=-all", "--inh-caps=-all"]
    namespaces = [
        "/usr/bin/unshare",
        "--mount",
        "--propagation=private",
        "--pid",
        "--fork",
        "--kill-child",
    ]
    return [*namespaces, "/bin/sh", "-c", "\n".join(script), "sh", *user, *command]


def _only_child(process_id: int) -> int:
    [child] = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return int(child)


def _wait_until_healthy(process: subprocess.Popen[str], image: Image) -> None:
    while subprocess.run(
        image.health_check, env=image.environment, capture_output=True, check=False
    ).returncode:
        if process.poll() is not None:
            raise ImageError(f"it ended with status {process.returncode} before it was healthy")
        time.sleep(0.2)


def _answer(port: str) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=json.dumps(CHAT).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        content: str = json.load(response)["choices"][0]["message"]["content"]
    return content


def _size(directory: Path) -> int:
    return sum(
        path.lstat().st_size
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ImageError, subprocess.CalledProcessError, urllib.error.URLError) as error:
        sys.exit(f"deploy/image: {error}")
