"""Runs `ouzel launch` with programs that record how they were started, and a server of models."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any  # JSON

from ouzel.launch.table import CLIENTS
from tests.http_servers import http_server
from tests.serve.forks import run_command

CATALOGUE = {"models": [{"slug": "m", "display_name": "m"}]}
LISTED = {
    "object": "list",
    "data": [
        {"id": "e", "max_model_len": 512, "capabilities": ["embedding"]},
        {"id": "m", "max_model_len": 32768, "capabilities": ["completion", "chat", "tools"]},
        {"id": "org/other", "context_length": 8192, "capabilities": ["chat"]},
    ],
}
# variables of the caller that would lead a client elsewhere
OF_THE_USER = {"ANTHROPIC_API_KEY": "sk-ant-user", "CLAUDE_CODE_USE_BEDROCK": "1"}


@dataclass
class ModelServer:
    """Answers /v1/models; with an API key it refuses requests without the key."""

    api_key: str = ""
    listed: Mapping[str, object] = field(default_factory=lambda: LISTED | CATALOGUE)
    url: str = ""
    paths: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server: ModelServer, *arguments: Any) -> None:
        self._server = server
        super().__init__(*arguments)

    # the base class determines the names
    def do_GET(self) -> None:
        self._server.paths.append(self.path)
        key = self._server.api_key
        if key and self.headers["authorization"] != f"Bearer {key}":
            self._answer(401, {"error": {"message": "the API key is missing or wrong"}})
        else:
            self._answer(200, self._server.listed)

    def _answer(self, status: int, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def model_server(**choices: Any) -> Iterator[ModelServer]:
    server = ModelServer(**choices)
    with http_server(partial(_Handler, server)) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


@dataclass(frozen=True)
class Ended:
    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class Started:
    """A client as `ouzel launch` started it."""

    arguments: list[str]
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Machine:
    """A user's directories: programs, home and data of Ouzel."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    def settings(self, client: str) -> Path:
        return self.root / "data" / "ouzel" / "launch" / client

    def install(self, *clients: str, status: int = 0) -> None:
        """Installs programs that record their start and end with a status."""
        for client in clients:
            program = self.root / "bin" / CLIENTS[client].program
            program.parent.mkdir(exist_ok=True)
            program.write_text(
                f"#!{sys.executable}\n"
                "import json, os, sys\n"
                f"with open({str(self.root / 'started.json')!r}, 'w') as file:\n"
                "    json.dump({'arguments': sys.argv[1:], 'variables': dict(os.environ)}, file)\n"
                "print('answer of the client')\n"
                f"sys.exit({status})\n"
            )
            program.chmod(0o755)

    def started(self) -> Started | None:
        """Returns the last start of a client, or None if no client was started."""
        try:
            return Started(**json.loads((self.root / "started.json").read_text()))
        except FileNotFoundError:
            return None

    def launch(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Ended:
        # Only these programs are on the search path: real clients may be installed.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")
        }
        environment |= {
            "PATH": str(self.root / "bin"),
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.root / "data"),
            **OF_THE_USER,
            **(variables or {}),
        }
        self.home.mkdir(exist_ok=True)
        ended = run_command("launch", *arguments, environment=environment, directory=self.home)
        return Ended(ended.returncode, ended.stdout, ended.stderr)
