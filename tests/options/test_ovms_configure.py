"""`--configure` writes a graph that the server reads again."""

from pathlib import Path

import pytest

from tests.options.ovms_command import run_ovms
from tests.options.ovms_configs import write_model_directory
from tests.options.read_graphs import read_graph_options
from tests.options.test_ovms_pull import Output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "--max_num_seqs 9 --max_num_batched_tokens 64",
            {"max_num_seqs": "9", "max_num_batched_tokens": "64"},
        ),
        (
            "--reasoning_parser qwen3 --enable_tool_guided_generation true",
            {"reasoning_parser": "qwen3"},
        ),
        ("--cache_dir /c'a\\c", {"cache_dir": "/c'a\\c"}),
        ('--plugin_config {"INFERENCE_NUM_THREADS":2}', {"num_threads": "2"}),
        ("--target_device GPU", {"device": "GPU"}),
        ("--kv_cache_precision f16 --num_streams 2", {"kv_cache_dtype": "f16"}),
    ],
)
def test_a_graph_is_configured_and_read_again(
    options: str, expected: dict[str, object], tmp_path: Path, capsys: Output
) -> None:
    directory = write_model_directory(tmp_path / "x", "what was there before")
    configure = f"ovms --configure --model_path {directory} --task text_generation"
    assert run_ovms(f"{configure} {options}", capsys) == (
        0,
        [f"Graph: graph.pbtxt created in: {directory}"],
        "",
    )
    read = read_graph_options(directory)
    assert {name: read[name] for name in expected} == expected
    assert (read["model"], read["prefix_caching"]) == (str(directory), "true")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "--task rerank --max_length 9 --max_allowed_chunks 5",
            {"max_model_len": "9", "max_document_chunks": "5"},
        ),
        (
            "--task embeddings --pooling LAST --max_length 9",
            {"pooling": "lasttoken", "max_model_len": "9"},
        ),
        (
            "--task embed --pooling cls --normalize FALSE",
            {"task": "embed", "pooling": "cls", "normalize": "false"},
        ),
        ("--task=embed --pooling auto --truncate", {"task": "embed", "truncate": "true"}),
        ("--task score", {"task": "score"}),
    ],
)
def test_a_graph_of_vectors_is_configured_and_read_again(
    options: str, expected: dict[str, object], tmp_path: Path, capsys: Output
) -> None:
    assert run_ovms(f"ovms --configure --model_path {tmp_path} {options}", capsys)[0] == 0
    read = read_graph_options(tmp_path)
    assert {name: read[name] for name in expected} == expected


def test_a_graph_that_could_not_be_read_is_not_written(tmp_path: Path, capsys: Output) -> None:
    configure = f"ovms --configure --model_path {tmp_path} --task text_generation --cache_size 1.5"
    status, output, errors = run_ovms(configure, capsys)
    assert (status, output, list(tmp_path.iterdir())) == (2, [], [])
    assert f"{tmp_path}/graph.pbtxt: cache_size: must be a whole number, given '1.5'" in errors
