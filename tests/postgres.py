"""Starts a private Postgres server from the installed binaries for the tests of a run."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

# 1: a missing server fails its tests, which would else be skipped
REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_POSTGRES"
DEBIAN_DIRECTORY = Path("/usr/lib/postgresql")
_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "max_connections=50",
    "listen_addresses=",
    "shared_buffers=16MB",
)


def postgres_binaries() -> Path | None:
    """Returns the directory of the newest installed server."""
    versions = sorted(
        DEBIAN_DIRECTORY.glob("*/bin/postgres"), key=lambda path: float(path.parent.parent.name)
    )
    if versions:
        return versions[-1].parent
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


@dataclass(frozen=True)
class PostgresServer:
    """A Postgres server, reached by a unix socket in a directory of its own."""

    binaries: Path
    directory: str

    def url(self, database: str) -> str:
        return f"postgresql://ouzel@/{database}?host={self.directory}"

    def new_database(self) -> str:
        """Creates an empty database and returns its URL."""
        name = f"test_{secrets.token_hex(8)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def start(self) -> None:
        settings = [
            f"-c {setting}" for setting in (*_SETTINGS, f"unix_socket_directories={self.directory}")
        ]
        self._control("-l", f"{self.directory}/log", "-o", " ".join(settings), "start")

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")

    def _control(self, *arguments: str) -> None:
        _run(
            self.binaries / "pg_ctl", "-D", f"{self.directory}/data", "-w", "-t", "300", *arguments
        )


@contextmanager
def running_postgres(binaries: Path) -> Iterator[PostgresServer]:
    # a short path, because a socket's path has at most 107 bytes
    with tempfile.TemporaryDirectory(prefix="ouzel-pg-") as directory:
        if os.geteuid() == 0:
            os.chown(directory, pwd.getpwnam("nobody").pw_uid, -1)
        login = ("-U", "ouzel", "-A", "trust", "-E", "UTF8", "--locale=C")
        _run(binaries / "initdb", "-D", f"{directory}/data", "--no-sync", *login)
        server = PostgresServer(binaries, directory)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _run(*command: str | Path) -> None:
    """Runs a command, and not as root, because Postgres refuses to run as root."""
    result = subprocess.run(
        [str(part) for part in command],
        user="nobody" if os.geteuid() == 0 else None,
        cwd="/",
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command[0]}: {result.stdout}"
