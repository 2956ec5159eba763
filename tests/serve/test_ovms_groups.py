"""OVMS's groups of config.json come and go, as its documents of 2026.4 describe."""

import json
import time
from pathlib import Path

import httpx

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import serving
from tests.serve.test_models_come_and_go import ask, copy_demo


def write_config(path: Path, groups: dict[str, str]) -> None:
    """Writes a file with these models and their groups, and moves it into its place."""
    entries = [
        {
            "config": {"name": name, "base_path": f"models/{name}"}
            | ({"group_name": group} if group else {})
        }
        for name, group in groups.items()
    ]
    content = {"model_config_list": entries, "idle_unload_timeout_seconds": 1000}
    path.with_suffix(".new").write_text(json.dumps(content))
    path.with_suffix(".new").replace(path)


def loaded(http: httpx.Client) -> set[str]:
    lines = http.get("/metrics").text.splitlines()
    start = 'ovms_graph_loaded{name="'
    return {
        line.removeprefix(start).partition('"')[0]
        for line in lines
        if line.startswith(start) and line.endswith(" 1")
    }


def test_one_group_is_in_memory_beside_the_permanent_one(tmp_path: Path) -> None:
    groups = {"llm": "chat", "writer": "chat", "alone": "", "always": "permanent"}
    for name in (*groups, "late"):
        copy_demo(tmp_path / "models" / name)
    write_config(tmp_path / "config.json", groups)
    with (
        serving(
            *("--profile", "ovms", "--config_path", str(tmp_path / "config.json"), "--no-store"),
            *("--file_system_poll_wait_seconds", "1"),
            cache_dir=tmp_path / "cache",
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        assert loaded(http) == {"llm", "writer", "always"}
        assert len(server.engine_processes()) == 3
        states = http.get("/v1/config").json()
        assert list(states) == ["llm", "writer", "always", "alone"]
        for name in groups:
            assert states[name]["model_version_status"][0]["state"] == "AVAILABLE"
            assert http.get(f"/v2/models/{name}/ready").status_code == 200

        assert ask(http, "alone") == "12 + 5 = 17"
        assert loaded(http) == {"alone", "always"}
        assert ask(http, "writer") == "12 + 5 = 17"
        while loaded(http) != {"llm", "writer", "always"}:
            time.sleep(0.02)

        write_config(tmp_path / "config.json", {"late": "", "llm": "chat", "always": "permanent"})
        while "late" not in http.get("/v1/config").json():
            time.sleep(0.05)
        while "writer" in http.get("/v1/config").json():
            time.sleep(0.05)
        assert http.get("/v2/models/alone/ready").status_code == 404
        assert ask(http, "late") == ask(http, "llm") == ask(http, "always") == "12 + 5 = 17"
        assert loaded(http) == {"llm", "always"}


def test_models_of_one_group_of_a_file_of_options(tmp_path: Path) -> None:
    (tmp_path / "options.yaml").write_text(
        "max_loaded_models: 2\n"
        "models:\n"
        f"- {{name: chat, model: {MODEL_DIRECTORY}, group: rag}}\n"
        f"- {{name: vectors, model: {MODEL_DIRECTORY}, group: rag}}\n"
        f"- {{name: small, model: {MODEL_DIRECTORY}}}\n"
    )
    with (
        serving(
            *("--config", str(tmp_path / "options.yaml"), "--no-store"),
            cache_dir=tmp_path / "cache",
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        assert loaded(http) == {"chat", "vectors"}
        assert ask(http, "small") == "12 + 5 = 17"
        assert loaded(http) == {"small"}
        assert ask(http, "vectors") == "12 + 5 = 17"
        while loaded(http) != {"chat", "vectors"}:
            time.sleep(0.02)
