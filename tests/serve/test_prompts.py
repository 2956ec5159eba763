"""A server reads its prompt templates at the start, and again on SIGHUP."""

import signal
from pathlib import Path

import httpx

from tests.api.requests import Json, wait_until
from tests.serve.running import RunningServer, serving, start

TEMPLATES = """
- id: sum
  versions:
    - version: 1
      messages: [{role: user, content: "What is {{a}} plus {{b}}?"}]
      temperature: 0
"""
SUM: Json = {"model": "ouzel-demo", "prompt": {"id": "sum", "variables": {"a": "12", "b": "5"}}}


def list_ids(http: httpx.Client) -> list[str]:
    return [each["id"] for each in http.get("prompts").json()["data"]]


def reload(server: RunningServer) -> None:
    server.process.send_signal(signal.SIGHUP)


def test_templates_are_read_at_the_start_and_on_sighup(tmp_path: Path) -> None:
    file = tmp_path / "prompts.yaml"
    file.write_text(TEMPLATES)
    with (
        serving("--prompts", str(file), "--no-store", cache_dir=tmp_path) as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        [item] = http.post("responses", json=SUM).json()["output"]
        assert "17" in item["content"][0]["text"]
        file.write_text(TEMPLATES.replace("id: sum", "id: total"))
        reload(server)
        wait_until(lambda: list_ids(http) == ["total"])
        assert http.post("responses", json=SUM).status_code == 404
        file.write_text("- 5")
        reload(server)
        file.write_text(TEMPLATES)
        reload(server)
        wait_until(lambda: list_ids(http) == ["sum"])
        assert http.post("responses", json=SUM).status_code == 200


def test_a_wrong_file_ends_the_start(tmp_path: Path) -> None:
    file = tmp_path / "prompts.yaml"
    file.write_text("- 5")
    process = start("--prompts", str(file), "--no-store", cache_dir=tmp_path)
    _, errors = process.communicate()
    assert process.returncode != 0
    assert f"--prompts {file}: prompts[0] must be a mapping of names, given 5" in errors
