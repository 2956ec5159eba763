"""`--add_to_config` and `--remove_from_config` edit config.json as OVMS's documents describe."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any  # the JSON of a configuration

import pytest

from ouzel.options.profiles.ovms_config_edit import ConfigEntry, add_to_config
from tests.options.ovms_command import run_ovms
from tests.options.ovms_configs import write_model_directory
from tests.options.test_options import parse

Output = pytest.CaptureFixture[str]


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_file_is_made_and_served_and_emptied_again(tmp_path: Path, capsys: Output) -> None:
    write_model_directory(tmp_path / "OpenVINO" / "Qwen3")
    config = tmp_path / "config.json"
    add = (
        f"ovms --add_to_config --config_path {config} --model_name OpenVINO/Qwen3 "
        f"--model_repository_path {tmp_path}"
    )

    assert run_ovms(add, capsys) == (0, [f"Config updated: {config}"], "")
    entry = {"name": "OpenVINO/Qwen3", "base_path": "OpenVINO/Qwen3"}
    assert read_json(config) == {"model_config_list": [{"config": entry}]}
    [served] = parse("--profile", "ovms", "--config_path", str(config)).all_models
    assert (served.model.model, served.model.served_model_name) == (
        str(tmp_path / "OpenVINO" / "Qwen3"),
        ("OpenVINO/Qwen3",),
    )

    remove = f"ovms --remove_from_config --config_path {config} --model_name OpenVINO/Qwen3"
    assert run_ovms(remove, capsys) == (0, [f"Config updated: {config}"], "")
    assert read_json(config) == {"model_config_list": []}


def test_everything_else_in_the_file_stays(tmp_path: Path, capsys: Output) -> None:
    config = tmp_path / "config.json"
    others = {
        "monitoring": {"metrics": {"enable": True}},
        "model_config_list": [{"config": {"name": "a", "base_path": "a", "nireq": 2}}],
        "mediapipe_config_list": [{"name": "b", "base_path": "b"}],
    }
    config.write_text(json.dumps(others))
    config.chmod(0o640)

    run_ovms(
        f"ovms --add_to_config --config_path {config} --model_name c --model_path models/c", capsys
    )
    run_ovms(f"ovms --remove_from_config --config_path {config} --model_name b", capsys)

    added = {"config": {"name": "c", "base_path": "models/c"}}
    assert read_json(config) == others | {
        "model_config_list": [*others["model_config_list"], added],
        "mediapipe_config_list": [],
    }
    assert config.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_the_repository_has_the_file_where_none_is_named(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVMS_MODEL_REPOSITORY_PATH", str(tmp_path))
    path = tmp_path / "config.json"
    assert run_ovms("ovms --add_to_config --model_name org/x", capsys) == (
        0,
        [f"Config updated: {path}"],
        "",
    )
    # OVMS took the directory behind --add_to_config until 2025.2.
    assert run_ovms(f"ovms --add_to_config {tmp_path} --model_name org/y", capsys)[0] == 0
    assert [item["config"]["base_path"] for item in read_json(path)["model_config_list"]] == [
        "org/x",
        "org/y",
    ]


def test_a_model_elsewhere_is_named_by_its_whole_path(tmp_path: Path, capsys: Output) -> None:
    config = tmp_path / "etc" / "config.json"
    run_ovms(
        (
            f"ovms --add_to_config --config_path {config} --model_name x "
            f"--model_repository_path {tmp_path / 'models'}"
        ),
        capsys,
    )
    assert read_json(config)["model_config_list"][0]["config"]["base_path"] == str(
        tmp_path / "models" / "x"
    )


def test_flags_about_the_model_become_keys_of_its_entry(tmp_path: Path, capsys: Output) -> None:
    config = tmp_path / "config.json"
    flags = (
        "--group_name permanent --target_device GPU --batch_size 1 --nireq 4 "
        '--plugin_config {"NUM_STREAMS":1}'
    )
    run_ovms(
        f"ovms --add_to_config --config_path {config} --model_name x --model_path /x {flags}",
        capsys,
    )
    assert read_json(config)["model_config_list"][0]["config"] == {
        "name": "x",
        "base_path": "/x",
        "target_device": "GPU",
        "plugin_config": {"NUM_STREAMS": 1},
        "group_name": "permanent",
        "batch_size": "1",
        "nireq": 4,
    }


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{}")
    run_ovms(
        (
            f"ovms --add_to_config --config_path {tmp_path / 'link.json'} --model_name x "
            "--model_path x"
        ),
        capsys,
    )
    assert (tmp_path / "link.json").is_symlink()
    assert read_json(tmp_path / "config.json")["model_config_list"][0]["config"]["name"] == "x"


def test_edits_at_the_same_time_lose_no_model(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    names = [f"model{number}" for number in range(32)]
    all_ready = Barrier(len(names))

    def add(name: str) -> None:
        all_ready.wait()
        add_to_config(config, ConfigEntry(name, "x"))

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(add, names))

    assert sorted(
        item["config"]["name"] for item in read_json(config)["model_config_list"]
    ) == sorted(names)


def test_a_pipe_is_not_a_file(tmp_path: Path, capsys: Output) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for flag in ("--add_to_config --model_path x", "--remove_from_config"):
        status, _, errors = run_ovms(f"ovms {flag} --config_path {pipe} --model_name x", capsys)
        assert (status, errors) == (2, f"ouzel: {pipe}: must be an ordinary file\n")


@pytest.mark.parametrize(
    ("content", "command", "message"),
    [
        (
            '{"model_config_list": [{"config": {"name": "x"}}]}',
            "--add_to_config --model_path x",
            "already exists",
        ),
        (
            '{"mediapipe_config_list": [{"name": "x"}]}',
            "--add_to_config --model_path x",
            "already exists",
        ),
        ("{}", "--remove_from_config", "the file has no model with the name x"),
        ("[]", "--remove_from_config", "must be a JSON object"),
        ('{"model_config_list": 1}', "--remove_from_config", "model_config_list: must be a list"),
        (
            "{}",
            "--add_to_config",
            "needs --model_path, or --model_repository_path in which the model is",
        ),
        (
            "{}",
            "--add_to_config --remove_from_config",
            "--add_to_config: cannot be used with --remove_from_config",
        ),
        (
            "{}",
            "--add_to_config --model_path x --plugin_config {",
            "must be a JSON object, given '{'",
        ),
    ],
)
def test_a_wrong_edit_leaves_the_file_as_it_is(
    content: str, command: str, message: str, tmp_path: Path, capsys: Output
) -> None:
    config = tmp_path / "config.json"
    config.write_text(content)
    status, output, errors = run_ovms(
        f"ovms {command} --config_path {config} --model_name x", capsys
    )
    assert (status, output) == (2, [])
    assert message in errors
    assert config.read_text() == content


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "--add_to_config --model_name x --model_path x",
            "--add_to_config: needs --config_path, or",
        ),
        (
            "--remove_from_config --config_path /nowhere/c.json",
            "--remove_from_config: needs --model_name, given ''",
        ),
        (
            "--remove_from_config --config_path /nowhere/c.json --model_name x",
            "there is no such file",
        ),
        (
            "--add_to_config --config_path /proc/c.json --model_name x --model_path x",
            "the file cannot be written: ",
        ),
    ],
)
def test_a_wrong_change_of_the_file_is_refused(command: str, message: str, capsys: Output) -> None:
    status, _, errors = run_ovms(f"ovms {command}", capsys)
    assert status == 2
    assert message in errors
