"""OVMS's config.json and directories with a graph are translated into Ouzel's options."""

import json
from pathlib import Path

import pytest

from ouzel.options.invalid_option import InvalidOption
from tests.options.ovms_command import run_ovms
from tests.options.ovms_configs import index_by_name, make_entry, read, write_model_directory
from tests.options.ovms_graphs import write_graph, write_vectors_graph
from tests.options.test_options import parse
from tests.options.test_ovms_graph import IMAGES, OF_TWO_MODELS


def test_both_lists_name_models_by_paths_from_the_file(tmp_path: Path) -> None:
    write_model_directory(
        tmp_path / "org" / "x",
        write_graph('models_path: "./" max_num_seqs: 8 tool_parser: "hermes3"'),
    )
    write_model_directory(tmp_path / "weights")
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "y.pbtxt").write_text(
        write_graph('models_path: "../weights" max_tokens_limit: 9')
    )
    write_model_directory(tmp_path / "z")
    options = read(
        tmp_path,
        {
            "model_config_list": [
                make_entry("org/x", "org/x"),
                make_entry("absolute", str(tmp_path / "weights")),
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

    models = index_by_name(options)
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


def test_unknown_keys_are_warnings_and_groups_without_a_timeout_are_remarks(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "x")
    write_model_directory(tmp_path / "y")
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
                make_entry("y", "y", group_name="large"),
            ],
            "agents": [],
        },
    )

    assert list(index_by_name(options)) == ["x", "y"]
    assert options.problems == {}
    assert options.remarks == (
        "x: group_name has no meaning without idle_unload_timeout_seconds",
        "y: group_name has no meaning without idle_unload_timeout_seconds",
    )
    assert options.warnings == (
        f"{tmp_path}/config.json: the key 'agents' is unknown and is ignored",
        "x: the key 'more' is unknown and is ignored",
        "x: the key 'group_names' is unknown and is ignored; did you mean group_name?",
    )
    assert not options.loads_on_request


def test_groups_are_unloaded_when_idle(tmp_path: Path) -> None:
    for name in "xyz":
        write_model_directory(tmp_path / name)
    content = {
        "model_config_list": [
            make_entry("x", "x", group_name="permanent"),
            make_entry("y", "y", group_name="large"),
            make_entry("z", "z"),
        ]
    }
    by_key = read(tmp_path, content | {"idle_unload_timeout_seconds": 60})
    by_flag = read(tmp_path, content, "--idle_unload_timeout_seconds", "60")

    for options in (by_key, by_flag):
        assert options.loads_on_request and options.models.one_group
        groups = {
            name: (settings.model.group, settings.model.idle_unload_s)
            for name, settings in index_by_name(options).items()
        }
        assert groups == {"x": ("permanent", 60), "y": ("large", 60), "z": ("z", 60)}
    assert not read(tmp_path, content, "--idle_unload_timeout_seconds", "0").loads_on_request


def test_approximations_of_a_graph_are_warnings_of_its_model(tmp_path: Path) -> None:
    directory = write_model_directory(
        tmp_path / "x", write_graph('models_path: "./" sparse_attention_config { mode: TRISHAPE }')
    )
    entry = make_entry("x", "x", plugin_config={"KV_CACHE_PRECISION": "u4"})
    options = read(tmp_path, {"model_config_list": [entry]})

    assert options.engine.kv_cache_dtype == "u8"
    assert [warning.partition(": ")[0] for warning in options.warnings] == ["x", "x"]
    alone = parse("--profile", "ovms", "--model_path", str(directory))
    assert [warning.partition(": ")[0] for warning in alone.warnings] == ["graph.pbtxt"]


def test_a_model_of_another_kind_is_left_out_and_named(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "x")
    (tmp_path / "resnet" / "1").mkdir(parents=True)
    (tmp_path / "resnet" / "1" / "model.xml").touch()
    write_model_directory(tmp_path / "painter", IMAGES)
    write_model_directory(tmp_path / "old", OF_TWO_MODELS)
    options = read(
        tmp_path,
        {
            "model_config_list": [
                make_entry(
                    "resnet",
                    "resnet",
                    batch_size="auto",
                    shape={"in": "(1,3)"},
                    plugin_config={"X": 1},
                ),
                make_entry("far", "s3://bucket/x"),
                make_entry("x", "x"),
            ],
            "mediapipe_config_list": [{"name": "painter"}, {"name": "old"}],
            "pipeline_config_list": [{"name": "dag", "nodes": [], "inputs": [], "outputs": []}],
            "custom_node_library_config_list": [{"name": "l", "base_path": "/l.so"}],
        },
    )

    assert list(index_by_name(options)) == ["x"]
    assert options.problems == {}
    assert [warning.partition(":")[0] for warning in options.warnings] == [
        f"{name} is not served" for name in ("resnet", "far", "painter", "old", "dag")
    ]
    assert options.warnings[2].endswith("its graph has ImageGenCalculator")


def test_a_model_may_lie_in_its_newest_version(tmp_path: Path) -> None:
    for version in ("2", "10", "9"):
        write_model_directory(tmp_path / "x" / version)
    (tmp_path / "x" / "11").mkdir()

    assert read(tmp_path, {"model_config_list": [make_entry("x", "x")]}).model.model == str(
        tmp_path / "x" / "10"
    )


def test_the_entry_counts_below_its_graph_and_ours_above_both(tmp_path: Path) -> None:
    write_model_directory(
        tmp_path / "x",
        write_graph('models_path: "./" device: "GPU" max_num_seqs: 8 best_of_limit: 5'),
    )
    entry = make_entry(
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


def test_models_of_the_command_line_may_stand_beside_the_file(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "x")

    assert list(
        index_by_name(
            read(tmp_path, {"model_config_list": [make_entry("x", "x")]}, "--model", "y=/y")
        )
    ) == ["x", "y"]


def test_a_repository_with_a_config_needs_no_flag(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "x")
    (tmp_path / "config.json").write_text(json.dumps({"model_config_list": [make_entry("x", "x")]}))
    environment = {"OUZEL_PROFILE": "ovms", "OVMS_MODEL_REPOSITORY_PATH": str(tmp_path)}

    assert list(index_by_name(parse(environment=environment))) == ["x"]
    assert list(
        index_by_name(parse("--profile", "ovms", "--model_repository_path", str(tmp_path)))
    ) == ["x"]
    assert parse("org/y", environment=environment).model.model == "org/y"
    assert parse(environment=environment | {"OUZEL_PROFILE": "openai"}).model.model == ""


def test_files_are_looked_at_as_often_as_the_flag_says(tmp_path: Path) -> None:
    directory = write_model_directory(tmp_path / "x")
    content = {"model_config_list": [make_entry("x", "x")]}
    options = read(tmp_path, content)

    assert options.has_file
    assert options.seen_files.every_s == 1
    assert options.seen_files.stamps == options.seen_files.stamps_now()
    assert set(options.seen_files.stamps) == {tmp_path / "config.json", directory / "graph.pbtxt"}
    (directory / "graph.pbtxt").write_text(write_graph('models_path: "./"'))
    assert options.seen_files.stamps != options.seen_files.stamps_now()
    assert read(tmp_path, content, "--file_system_poll_wait_seconds", "0").seen_files.every_s == 0


def test_the_graph_of_the_only_model_counts(tmp_path: Path) -> None:
    directory = write_model_directory(
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
    # Without the profile the graph is not read, so the default counts.
    assert parse(str(directory)).engine.max_num_seqs == 128


def test_each_model_of_a_config_has_the_task_of_its_graph(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "chat", write_graph('models_path: "./"'))
    embedder = 'models_path: "./" pooling: LAST truncate: true max_length: 64'
    directory = write_model_directory(
        tmp_path / "embedder", write_vectors_graph("Embeddings", embedder)
    )
    reranker = write_vectors_graph("Rerank", 'models_path: "./" max_allowed_chunks: 4')
    write_model_directory(tmp_path / "reranker", reranker)
    names = ("chat", "embedder", "reranker")
    models = index_by_name(
        read(tmp_path, {"model_config_list": [make_entry(name, name) for name in names]})
    )

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
    write_model_directory(tmp_path / "weights")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "graph.pbtxt").write_text(write_graph('models_path: "../weights"'))
    model = parse("--profile", "ovms", str(tmp_path / "x")).model

    assert (model.model, model.served_model_name) == (str(tmp_path / "weights"), ("x",))


def test_the_graph_of_something_else_is_refused(tmp_path: Path) -> None:
    directory = write_model_directory(tmp_path / "x", IMAGES)

    with pytest.raises(InvalidOption, match="x cannot be served: its graph has ImageGenCalculator"):
        parse("--profile", "ovms", "--model_path", str(directory))


def test_models_of_a_repository_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model_directory(tmp_path / "meta" / "llama4", write_graph('models_path: "./"'))
    write_model_directory(tmp_path / "meta" / "llama4" / "draft", write_graph('models_path: "./"'))
    write_model_directory(tmp_path / "plain", write_graph('models_path: "./"'))
    (tmp_path / "resnet" / "1").mkdir(parents=True)
    (tmp_path / "resnet" / "1" / "model.xml").touch()
    (tmp_path / "empty" / "1").mkdir(parents=True)

    command = f"ovms --list_models --model_repository_path {tmp_path}"

    assert run_ovms(command, capsys) == (0, ["meta/llama4", "plain", "resnet"], "")
