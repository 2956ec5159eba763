"""Serves the service worker, which keeps the page for times when the server is away.

Its first lines come from here: the build, and the files that the page needs. So every other build
is another script, and browsers replace the worker at once.
"""

import json

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.site.build import name_build
from ouzel.api.site.content import Content
from ouzel.api.site.headers import BUILD_HEADER, HEADERS
from ouzel.playground import DIRECTORY, file_names

NAME = "worker.js"
_SCRIPT = "text/javascript"
# The live figures need a server. Texts come along with the page of their language.
_NOT_KEPT = ("texts/", "icons/", "modules/figures/", "styles/figures.css", "worker")
_KEPT_KINDS = (".css", ".js", ".svg")


class ShellWorker:
    def __init__(self, root_path: str) -> None:
        facts = {"build": name_build(), "files": list_shell_files(), "header": BUILD_HEADER}
        first = f"const SHELL = {json.dumps(facts)};\n"
        self._script = Content((first + (DIRECTORY / NAME).read_text()).encode(), _SCRIPT)
        self._headers = make_worker_headers(root_path)

    async def __call__(self, request: Request) -> Response:
        return self._script.answer(request, self._headers)


class RetiredWorker:
    """Replaces the worker on a server without playground, and deletes the offline copy."""

    def __init__(self, root_path: str) -> None:
        self._script = Content((DIRECTORY / "worker_retired.js").read_bytes(), _SCRIPT)
        self._headers = make_worker_headers(root_path)

    async def __call__(self, request: Request) -> Response:
        return self._script.answer(request, self._headers)


def list_shell_files() -> list[str]:
    """Returns the names of the files without which the page of the chat does not open."""
    return [
        name
        for name in file_names()
        if name.endswith(_KEPT_KINDS) and not name.startswith(_NOT_KEPT)
    ]


def make_worker_headers(root_path: str) -> dict[str, str]:
    """Returns headers that let the worker serve the page, which is above its own folder."""
    return HEADERS | {"service-worker-allowed": f"{root_path}/", BUILD_HEADER: name_build()}
