"""OVMS's config.json and directories with a graph are translated into Ouzel's options."""

import json
import os
from pathlib import Path

import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import ModelSettings
from ouzel.options.options import Options
from ouzel.serve.command import apply_logging
from tests.options.ovms_command import run_ovms
from tests.options.ovms_graphs import write_graph, write_vectors_graph
from tests.options.test_options import parse
from tests.options.test_ovms_graph import IMAGES, OF_TWO_MODELS


def model_in(directory: Path, graph: str = "") -> Path:
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


def listed(name: str, base_path: str, **fields: object) -> dict[str, object]:
    return {"config": {"name": name, "base_path": base_path, **fields}}


def by_name(options: Options) -> dict[str, ModelSettings]:
    return {settings.model.served_model_name[0]: settings for settings in options.all_models}


def test_both_lists_name_models_by_paths_from_the_file(tmp_path: Path) -> None:
    model_in(
        tmp_path / "org" / "x",
        write_graph('models_path: "./" max_num_seqs: 8 tool_parser: "hermes3"'),
    )
    model_in(tmp_path / "weights")
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "y.pbtxt").write_text(
        write_graph('models_path: "../weights" max_tokens_limit: 9')
    )
    model_in(tmp_path / "z")
    options = read(
        tmp_path,
        {
            "model_config_list": [
                listed("org/x", "org/x"),
                listed("absolute", str(tmp_path / "weights")),
            ],
            "mediapipe_config_list": [
                {
                    "name": "y",
                    "base_path": "graphs",
                    "graph_path": "y.pbtxt",
                    "subconfig": "subconfig.json",
                },
                {"name": "z"},
            ],
            "monitoring": {"metrics": {"enable": True}},
        },
    )

    models = by_name(options)
    assert {name: settings.model.model for name, settings in models.items()} == {
        "org/x": str(tmp_path / "org" / "x"),
        "absolute": str(tmp_path / "weights"),
        "y": str(tmp_path / "weights"),
        "z": str(tmp_path / "z"),
    }
    assert [settings.engine.max_num_seqs for settings in models.values()] == [8, 128, 128, 128]
    assert (models["org/x"].model.tool_parser, models["y"].model.max_tokens_limit) == ("hermes3", 9)
    assert options.model.max_tokens_limit is None
    assert (options.warnings, options.problems) == ((), {})
    assert options.remarks == (
        "OpenVINO Model Server's monitoring has no meaning here: metrics are always at /metrics",
        "y: OpenVINO Model Server's subconfig has no meaning here",
    )


def test_unknown_keys_and_groups_are_warnings(tmp_path: Path) -> None:
    model_in(tmp_path / "x")
    model_in(tmp_path / "y")
    options = read(
        tmp_path,
        {
            "model_config_list": [
                {
                    "config": {
                        "name": "x",
                        "base_path": "x",
                        "group_names": "a",
                        "group_name": "permanent",
                    },
                    "more": 1,
                },
                listed("y", "y", group_name="large"),
            ],
            "agents": [],
        },
    )

    assert list(by_name(options)) == ["x", "y"]
    assert (options.problems, options.remarks) == ({}, ())
    assert options.warnings == (
        f"{tmp_path}/config.json: the key 'agents' is unknown and is ignored",
        "x: the key 'more' is unknown and is ignored",
        "x: the key 'group_names' is unknown and is ignored; did you mean group_name?",
        "y: group_name 'large': groups are not unloaded yet; "
        "the model is loaded at the start and stays, "
        "as in the group permanent",
    )


def test_approximations_of_a_graph_are_warnings_of_its_model(tmp_path: Path) -> None:
    directory = model_in(
        tmp_path / "x", write_graph('models_path: "./" sparse_attention_config { mode: TRISHAPE }')
    )
    entry = listed("x", "x", plugin_config={"KV_CACHE_PRECISION": "u4"})
    options = read(tmp_path, {"model_config_list": [entry]})

    assert options.engine.kv_cache_dtype == "u8"
    assert [warning.partition(": ")[0] for warning in options.warnings] == ["x", "x"]
    alone = parse("--profile", "ovms", "--model_path", str(directory))
    assert [warning.partition(": ")[0] for warning in alone.warnings] == ["graph.pbtxt"]


def test_what_is_no_language_model_is_left_out_and_named(tmp_path: Path) -> None:
    model_in(tmp_path / "x")
    (tmp_path / "resnet" / "1").mkdir(parents=True)
    (tmp_path / "resnet" / "1" / "model.xml").touch()
    model_in(tmp_path / "painter", IMAGES)
    model_in(tmp_path / "old", OF_TWO_MODELS)
    options = read(
        tmp_path,
        {
            "model_config_list": [
                listed(
                    "resnet",
                    "resnet",
                    batch_size="auto",
                    shape={"in": "(1,3)"},
                    plugin_config={"X": 1},
                ),
                listed("far", "s3://bucket/x"),
                listed("x", "x"),
            ],
            "mediapipe_config_list": [{"name": "painter"}, {"name": "old"}],
            "pipeline_config_list": [{"name": "dag", "nodes": [], "inputs": [], "outputs": []}],
            "custom_node_library_config_list": [{"name": "l", "base_path": "/l.so"}],
        },
    )

    assert list(by_name(options)) == ["x"]
    assert options.problems == {}
    assert [warning.partition(":")[0] for warning in options.warnings] == [
        f"{name} is not served" for name in ("resnet", "far", "painter", "old", "dag")
    ]
    assert options.warnings[2].endswith("its graph has ImageGenCalculator")


def test_a_model_may_lie_in_its_newest_version(tmp_path: Path) -> None:
    for version in ("2", "10", "9"):
        model_in(tmp_path / "x" / version)
    (tmp_path / "x" / "11").mkdir()

    assert read(tmp_path, {"model_config_list": [listed("x", "x")]}).model.model == str(
        tmp_path / "x" / "10"
    )


def test_the_entry_counts_below_its_graph_and_ours_above_both(tmp_path: Path) -> None:
    model_in(
        tmp_path / "x",
        write_graph('models_path: "./" device: "GPU" max_num_seqs: 8 best_of_limit: 5'),
    )
    entry = listed(
        "x", "x", target_device="NPU", plugin_config={"KV_CACHE_PRECISION": "u8"}, nireq=4
    )
    options = read(
        tmp_path,
        {"model_config_list": [entry]},
        *("--max-num-seqs", "4", "--max-choices", "7"),
        OUZEL_PRECISION="f32",
    )

    assert (options.engine.device, options.engine.kv_cache_dtype) == ("GPU", "u8")
    assert (options.engine.max_num_seqs, options.limits.max_choices) == (4, 7)
    assert options.remarks == ("x: OpenVINO Model Server's nireq has no meaning here",)


def test_models_of_ours_may_stand_beside_them(tmp_path: Path) -> None:
    model_in(tmp_path / "x")

    assert list(
        by_name(read(tmp_path, {"model_config_list": [listed("x", "x")]}, "--model", "y=/y"))
    ) == ["x", "y"]


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
    model_in(tmp_path / "x")
    model_in(tmp_path / "wrong", write_graph(graph))
    options = read(tmp_path, {"model_config_list": [listed("wrong", "wrong"), listed("x", "x")]})

    assert list(by_name(options)) == ["x"]
    with pytest.raises(InvalidOption, match=problem):
        apply_logging(options)


def test_other_wrong_entries(tmp_path: Path) -> None:
    model_in(tmp_path / "x")
    (tmp_path / "x" / "empty.pbtxt").touch()
    entries = [
        listed("x", "x"),
        listed("x", "x"),
        listed("gone", "gone"),
        listed("g", "x", graph_path="no.pbtxt"),
    ]
    entries.append(listed("empty", "x", graph_path="empty.pbtxt"))

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
            {"model_config_list": [listed("x", "x", group_name=1)]},
            "config.json: Expected `str`, got `int`",
        ),
        ({"mediapipe_config_list": [{"base_path": "x"}]}, "config.json: .*required field `name`"),
        ({"mediapipe_config_list": [{"name": ""}]}, "config.json: each model must have a `name`"),
        (
            '{"monitoring": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}",
            "its objects are nested too deep",
        ),
        (
            {"model_config_list": [listed("x", "a\0b")]},
            r"'x': a name or a path must have no NUL in it",
        ),
        ({"model_config_list": [listed("x", "x", graph_path="\0")]}, "must have no NUL in it"),
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
    problems = read(tmp_path, {"model_config_list": [listed("x", "a" * 10_000)]}).problems
    assert "cannot be read: File name too long" in problems["x"]


def test_a_model_at_a_path_that_no_disk_takes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_in(tmp_path / "x", write_graph(f'models_path: "{"a" * 10_000}"'))
    for path in ("./" + "a" * 10_000, str(tmp_path / "x")):
        status, _, errors = run_ovms(f"ovms --model_path {path} --rest_port 0", capsys)
        assert (status, errors.endswith("aaa cannot be read: File name too long\n")) == (1, True)


def test_a_graph_that_is_no_ordinary_file_is_not_read(tmp_path: Path) -> None:
    model_in(tmp_path / "x")
    os.mkfifo(tmp_path / "x" / "pipe")
    for graph in ("/dev/zero", "pipe", "."):
        problems = read(
            tmp_path, {"model_config_list": [listed("x", "x", graph_path=graph)]}
        ).problems
        assert "must be an ordinary file" in problems["x"]


def test_a_repository_with_a_config_needs_no_flag(tmp_path: Path) -> None:
    model_in(tmp_path / "x")
    (tmp_path / "config.json").write_text(json.dumps({"model_config_list": [listed("x", "x")]}))
    environment = {"OUZEL_PROFILE": "ovms", "OVMS_MODEL_REPOSITORY_PATH": str(tmp_path)}

    assert list(by_name(parse(environment=environment))) == ["x"]
    assert list(by_name(parse("--profile", "ovms", "--model_repository_path", str(tmp_path)))) == [
        "x"
    ]
    assert parse("org/y", environment=environment).model.model == "org/y"
    assert parse(environment=environment | {"OUZEL_PROFILE": "openai"}).model.model == ""


def test_files_are_looked_at_as_often_as_the_flag_says(tmp_path: Path) -> None:
    directory = model_in(tmp_path / "x")
    content = {"model_config_list": [listed("x", "x")]}
    options = read(tmp_path, content)

    assert options.has_file
    assert options.seen_files.every_s == 1
    assert options.seen_files.stamps == options.seen_files.stamps_now()
    assert set(options.seen_files.stamps) == {tmp_path / "config.json", directory / "graph.pbtxt"}
    (directory / "graph.pbtxt").write_text(write_graph('models_path: "./"'))
    assert options.seen_files.stamps != options.seen_files.stamps_now()
    assert read(tmp_path, content, "--file_system_poll_wait_seconds", "0").seen_files.every_s == 0


def test_the_graph_of_the_only_model_counts(tmp_path: Path) -> None:
    directory = model_in(
        tmp_path / "x",
        write_graph('models_path: "./" max_num_seqs: 8 best_of_limit: 5 block_size: 1'),
    )
    path = ("--model_path", str(directory))
    options = parse("--profile", "ovms", *path, "--model_name", "mine", "--model", "y=/y")

    assert (options.model.model, options.model.served_model_name) == (str(directory), ("mine",))
    assert [settings.engine.max_num_seqs for settings in options.all_models] == [8, 128]
    assert options.limits.max_choices == 4
    assert options.remarks == (
        "graph.pbtxt: OpenVINO Model Server's block_size has no meaning here",
    )
    assert parse("--profile", "ovms", *path, "--max_num_seqs", "2").engine.max_num_seqs == 2
    assert (
        parse(str(directory)).engine.max_num_seqs == 128
    )  # the default: without the profile, the graph is not read


def test_each_model_of_a_config_has_the_task_of_its_graph(tmp_path: Path) -> None:
    model_in(tmp_path / "chat", write_graph('models_path: "./"'))
    embedder = 'models_path: "./" pooling: LAST truncate: true max_length: 64'
    directory = model_in(tmp_path / "embedder", write_vectors_graph("Embeddings", embedder))
    reranker = write_vectors_graph("Rerank", 'models_path: "./" max_allowed_chunks: 4')
    model_in(tmp_path / "reranker", reranker)
    names = ("chat", "embedder", "reranker")
    models = by_name(read(tmp_path, {"model_config_list": [listed(name, name) for name in names]}))

    assert [models[name].model.task for name in names] == ["auto", "embed", "score"]
    assert [models[name].model.max_document_chunks for name in names] == [10000, 10000, 4]
    alone = parse("--profile", "ovms", "--model_path", str(directory)).model
    for model in (models["embedder"].model, alone):
        assert (model.pooling, model.normalize, model.truncate, model.max_model_len) == (
            "lasttoken",
            True,
            True,
            64,
        )
    ours = parse("--profile", "ovms", "--pooling", "mean", str(directory)).model
    assert (ours.pooling, ours.normalize) == ("mean", True)


def test_a_graph_leads_to_its_model_under_its_own_name(tmp_path: Path) -> None:
    model_in(tmp_path / "weights")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "graph.pbtxt").write_text(write_graph('models_path: "../weights"'))
    model = parse("--profile", "ovms", str(tmp_path / "x")).model

    assert (model.model, model.served_model_name) == (str(tmp_path / "weights"), ("x",))


def test_the_graph_of_something_else_is_refused(tmp_path: Path) -> None:
    directory = model_in(tmp_path / "x", IMAGES)

    with pytest.raises(InvalidOption, match="x cannot be served: its graph has ImageGenCalculator"):
        parse("--profile", "ovms", "--model_path", str(directory))


def test_models_of_a_repository_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_in(tmp_path / "meta" / "llama4", write_graph('models_path: "./"'))
    model_in(tmp_path / "meta" / "llama4" / "draft", write_graph('models_path: "./"'))
    model_in(tmp_path / "plain", write_graph('models_path: "./"'))
    (tmp_path / "resnet" / "1").mkdir(parents=True)
    (tmp_path / "resnet" / "1" / "model.xml").touch()
    (tmp_path / "empty" / "1").mkdir(parents=True)

    command = f"ovms --list_models --model_repository_path {tmp_path}"

    assert run_ovms(command, capsys) == (0, ["meta/llama4", "plain", "resnet"], "")
