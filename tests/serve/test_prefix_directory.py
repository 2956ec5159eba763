"""A server uses the prefix cache directory that an earlier server has written."""

import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.running import RunningServer, serving

SYSTEM = (
    "You answer in one sentence, as the captain of a ship would: "
    + "keep calm, name the course, be brief. " * 12
)
CHAT = {
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Where are we?"},
    ],
    "max_tokens": 8,
    "temperature": 0,
}


def answer(server: RunningServer, api_key: str = "") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    response = httpx.post(
        f"{server.url}/chat/completions", json=CHAT, headers=headers, timeout=None
    )
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def num_cached(body: dict[str, Any]) -> int:
    num_tokens: int = body["usage"]["prompt_tokens_details"]["cached_tokens"]
    return num_tokens


def counter(server: RunningServer, name: str) -> float:
    lines = httpx.get(f"{server.root}/metrics").text.splitlines()
    [line] = [line for line in lines if line.startswith(f"ouzel_{name}{{")]
    return float(line.rpartition(" ")[2])


def test_the_first_request_after_a_restart_is_a_hit_unless_the_directory_is_damaged(
    tmp_path: Path,
) -> None:
    options = ("--prefix-cache-dir", str(tmp_path / "prefixes"))
    with serving(*options, cache_dir=tmp_path) as server:
        first = answer(server)
        assert num_cached(first) == 0
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0
    with serving(*options, cache_dir=tmp_path) as server:
        second = answer(server)
        num_loaded = num_cached(second) / 32
        assert num_loaded == (first["usage"]["prompt_tokens"] - 1) // 32 > 0
        assert second["choices"] == first["choices"]
        assert counter(server, "prefix_store_loaded_total") == num_loaded
        assert counter(server, "prefix_store_bytes") > 0
    for path in (tmp_path / "prefixes").glob("*/*.block"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with serving(*options, cache_dir=tmp_path) as server:
        third = answer(server)
        assert num_cached(third) == 0
        assert third["choices"] == first["choices"]
        assert counter(server, "prefix_store_damaged_total") > 0


@pytest.mark.release("restarts of a server with stored responses, and stored prefixes")
def test_after_a_restart_only_the_same_api_key_hits_its_prompts(
    tmp_path: Path,
) -> None:
    options = (
        "--prefix-cache-dir",
        str(tmp_path / "prefixes"),
        "--api-key",
        "mine",
        "--api-key",
        "yours",
    )
    with serving(*options, cache_dir=tmp_path) as server:
        answer(server, "mine")
    with serving(*options, cache_dir=tmp_path) as server:
        assert num_cached(answer(server, "yours")) == 0
        assert num_cached(answer(server, "mine")) > 0
