"""Serves the demo models under the names in the documents, and sends the documents' requests."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import httpx

from ouzel.demo import MODEL_DIRECTORY, VISION_MODEL_DIRECTORY
from tests.http_servers import file_server
from tests.peer_documents.curl import CurlRequest, parse_curl
from tests.serve.drawings import encoded, shape
from tests.serve.running import serving

Json = dict[str, Any]

PICTURE = "images/zebra.jpeg"  # its name in the documents
ENGINE_OPTIONS = ("--precision", "f32", "--kv-cache-dtype", "f32")


@dataclass(frozen=True)
class Peer:
    """A running server, and the places of the pictures that it may read."""

    profile: str
    root: str
    pictures: Path  # a directory that the server may read
    pictures_root: str  # the same directory over HTTP

    def send(self, command: str, **fields: object) -> httpx.Response:
        """Sends the request of a curl command, with `fields` added to its body."""
        request = parse_curl(self.complete(command))
        content = json.dumps(json.loads(request.body) | fields) if fields else request.body
        return self.send_body(request, content)

    def send_body(self, request: CurlRequest, content: str) -> httpx.Response:
        url = httpx.URL(request.url).copy_with(scheme="http", netloc=httpx.URL(self.root).netloc)
        return httpx.request(
            request.method, url, headers=request.headers, content=content, timeout=None
        )

    def complete(self, text: str) -> str:
        """Replaces the shortened pictures by real ones, and mends `stream: false`, which is not
        JSON.
        """
        replacements = {
            "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD ...": self.picture_base64(),
            "http:// ... /images": f"{self.pictures_root}/images",
            '"/images': f'"{self.pictures}/images',
            "\n    stream: false": '\n    "stream": false',
        }
        for shortened, real in replacements.items():
            text = text.replace(shortened, real)
        return text

    def picture_base64(self) -> str:
        return b64encode((self.pictures / PICTURE).read_bytes()).decode()


@contextmanager
def serving_peer(profile: str, directory: Path) -> Iterator[Peer]:
    pictures = directory / "pictures"
    (pictures / "images").mkdir(parents=True)
    (pictures / PICTURE).write_bytes(encoded(shape("circle", "red"), "JPEG"))
    with file_server(pictures) as port:
        media = [
            *("--allowed-media-domains", f"127.0.0.1:{port}"),
            *("--allowed-local-media-path", str(pictures)),
        ]
        with serving(
            *_options(profile), *ENGINE_OPTIONS, *media, cache_dir=directory / "cache"
        ) as server:
            yield Peer(profile, server.root, pictures, f"http://127.0.0.1:{port}")


def _options(profile: str) -> tuple[str, ...]:
    models = ("--model", f"llama3={MODEL_DIRECTORY}", "--model", f"llava={VISION_MODEL_DIRECTORY}")
    if profile == "default":
        return models
    if profile == "lmi":  # else the server would listen on LMI's own address
        return (
            *models,
            "--profile",
            "lmi",
            "--port",
            "0",
            "--host",
            "127.0.0.1",
            "--lmi-strict-logprobs",
        )
    return (*models, "--profile", profile)
