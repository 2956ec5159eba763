"""Wrong entries and unreadable files of OVMS's configuration are refused or left out."""

import os
from pathlib import Path

import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.command import apply_logging
from tests.options.ovms_command import run_ovms
from tests.options.ovms_configs import index_by_name, make_entry, read, write_model_directory
from tests.options.ovms_graphs import write_graph
from tests.options.test_options import parse


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        ("max_num_seqs: 8", "graph.pbtxt: models_path: must be given"),
        ('models_path: "./" max_num_seqs: 0', "wrong: --max-num-seqs: .*given '0'"),
        (
            'models_path: "./" best_of_limit: 5',
            "best_of_limit: is one for all .*: start with --max-choices 4 instead",
        ),
        (
            'models_path: "./" plugin_config: \'{"KV_CACHE_PRECISION": "u3"}\'',
            "--kv-cache-dtype: .*given 'u3'",
        ),
        (
            'models_path: "./" generation_config_path: "g.json"',
            "generation_config_path: the model's own",
        ),
    ],
)
def test_a_wrong_entry_ends_a_start_and_no_other_entry(
    tmp_path: Path, graph: str, problem: str
) -> None:
    write_model_directory(tmp_path / "x")
    write_model_directory(tmp_path / "wrong", write_graph(graph))
    options = read(
        tmp_path, {"model_config_list": [make_entry("wrong", "wrong"), make_entry("x", "x")]}
    )

    assert list(index_by_name(options)) == ["x"]
    with pytest.raises(InvalidOption, match=problem):
        apply_logging(options)


def test_other_wrong_entries(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "x")
    (tmp_path / "x" / "empty.pbtxt").touch()
    entries = [
        make_entry("x", "x"),
        make_entry("x", "x"),
        make_entry("gone", "gone"),
        make_entry("g", "x", graph_path="no.pbtxt"),
    ]
    entries.append(make_entry("empty", "x", graph_path="empty.pbtxt"))

    origin = f"--config_path {tmp_path}/config.json"
    assert read(tmp_path, {"model_config_list": entries}).problems == {
        "x": f"{origin}: x: must be the name of one model, given twice",
        "gone": f"{origin}: gone: must be a directory, given {tmp_path}/gone",
        "g": f"{origin}: g: {tmp_path}/x/no.pbtxt: No such file or directory",
        "empty": (
            f"{origin}: empty: {tmp_path}/x/empty.pbtxt: node: must be present, with a calculator"
        ),
    }
    assert "must name a model" in read(tmp_path, {"model_config_list": []}).problems[""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "config.json: .*"),
        ("[]", "config.json: Expected `object`, got `array`"),
        ({"model_config_list": [{"name": "x"}]}, "config.json: .*config"),
        (
            {"model_config_list": [make_entry("x", "x", group_name=1)]},
            "config.json: Expected `str`, got `int`",
        ),
        ({"mediapipe_config_list": [{"base_path": "x"}]}, "config.json: .*required field `name`"),
        ({"mediapipe_config_list": [{"name": ""}]}, "config.json: each model must have a `name`"),
        (
            '{"monitoring": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}",
            "its objects are nested too deep",
        ),
        (
            {"model_config_list": [make_entry("x", "a\0b")]},
            r"'x': a name or a path must have no NUL in it",
        ),
        ({"model_config_list": [make_entry("x", "x", graph_path="\0")]}, "must have no NUL in it"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_as_a_whole(
    tmp_path: Path, content: object, message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        read(tmp_path, content)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'{"monitoring": {"a": "\xff"}}')
    with pytest.raises(InvalidOption, match=r"config\.json: .*utf-8"):
        parse("--profile", "ovms", "--config_path", str(path))


def test_a_path_that_no_disk_takes_is_a_problem_of_its_model(tmp_path: Path) -> None:
    problems = read(tmp_path, {"model_config_list": [make_entry("x", "a" * 10_000)]}).problems
    assert "cannot be read: File name too long" in problems["x"]


def test_a_model_at_a_path_that_no_disk_takes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model_directory(tmp_path / "x", write_graph(f'models_path: "{"a" * 10_000}"'))
    for path in ("./" + "a" * 10_000, str(tmp_path / "x")):
        status, _, errors = run_ovms(f"ovms --model_path {path} --rest_port 0", capsys)
        assert (status, errors.endswith("aaa cannot be read: File name too long\n")) == (1, True)


def test_a_graph_that_is_no_ordinary_file_is_not_read(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "x")
    os.mkfifo(tmp_path / "x" / "pipe")
    for graph in ("/dev/zero", "pipe", "."):
        problems = read(
            tmp_path, {"model_config_list": [make_entry("x", "x", graph_path=graph)]}
        ).problems
        assert "must be an ordinary file" in problems["x"]
