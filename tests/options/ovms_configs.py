"""Writes model directories and OVMS's config.json, and reads them as options."""

import json
from pathlib import Path

from ouzel.options.model_settings import ModelSettings
from ouzel.options.options import Options
from tests.options.test_options import parse


def write_model_directory(directory: Path, graph: str = "") -> Path:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text('{"model_type": "qwen3"}')
    (directory / "openvino_model.xml").touch()
    if graph:
        (directory / "graph.pbtxt").write_text(graph)
    return directory


def read(tmp_path: Path, content: object, *arguments: str, **environment: str) -> Options:
    path = tmp_path / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return parse(
        "--profile", "ovms", "--config_path", str(path), *arguments, environment=environment
    )


def make_entry(name: str, base_path: str, **fields: object) -> dict[str, object]:
    return {"config": {"name": name, "base_path": base_path, **fields}}


def index_by_name(options: Options) -> dict[str, ModelSettings]:
    return {settings.model.served_model_name[0]: settings for settings in options.all_models}
