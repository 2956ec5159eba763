"""Runs `ouzel quantize` and `ouzel pull --calibrate` as a user does."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.release_only import release_only
from tests.serve.forks import run_command

SENTENCES = Path(__file__).parents[1] / "backends" / "golden_sentences"
IR = SENTENCES.parent / "optimum_ir" / "mistral-int8"


def run_ouzel(*arguments: str, cache: Path) -> tuple[int, str, str]:
    process = run_command(*arguments, environment=os.environ | {"OUZEL_CACHE_DIR": str(cache)})
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The tide comes in twice a day. def tide(hours): return hours % 12.4\n" * 40)
    return path


@pytest.mark.release("quantize writes whole checkpoints")
def test_a_checkpoint_is_written_whole_and_served(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "made" / "model"
    status, output, log = run_ouzel(
        "quantize",
        str(MODEL_DIRECTORY),
        str(out),
        "--calibration-text",
        str(text),
        cache=tmp_path / "cache",
    )
    assert status == 0
    assert f"to serve it: ouzel serve {out}" in output
    assert re.search(
        r"\d+ matrices in int4, \d+ in int8, 1 in floats, 4\.\d\d bits a quantised weight", output
    )
    assert (
        "model has quantised weights (compressed-tensors), which are rounded a second time" in log
    )
    assert [path.name for path in out.parent.iterdir()] == ["model"]
    copied = {path.name for path in MODEL_DIRECTORY.iterdir()} - {"README.md"}
    assert {path.name for path in out.iterdir()} == copied
    config = json.loads((out / "config.json").read_bytes())
    assert config["quantization_config"]["format"] == "pack-quantized"
    assert "lm_head" in config["quantization_config"]["ignore"]

    status, output, _ = run_ouzel("inspect", str(out), cache=tmp_path / "cache")
    assert status == 0
    assert "i4" in output


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    status, _, errors = run_ouzel(
        "quantize", str(MODEL_DIRECTORY), str(tmp_path), cache=tmp_path / "cache"
    )
    assert status != 0
    assert f"OUT must be a new or an empty directory, given {tmp_path}" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.release("a checkpoint written through a link")
def test_a_link_to_an_empty_directory_is_followed(tmp_path: Path, text: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    arguments = [
        "quantize",
        str(MODEL_DIRECTORY),
        str(tmp_path / "link"),
        "--calibration-text",
        str(text),
    ]
    status, output, _ = run_ouzel(*arguments, cache=tmp_path / "cache")
    assert status == 0
    assert f"to serve it: ouzel serve {tmp_path / 'link'}" in output
    assert (tmp_path / "empty" / "model.safetensors").is_file()


@pytest.mark.parametrize("name", ["x" * 300, "circle"])
def test_a_path_that_cannot_be_looked_at_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    status, _, errors = run_ouzel(
        "quantize", str(MODEL_DIRECTORY), str(tmp_path / name), cache=tmp_path / "cache"
    )
    assert status == 2
    assert f"OUT: {tmp_path / name} cannot be used" in errors


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *release_only("further signals", signal.SIGINT, signal.SIGHUP)]
)
def test_a_signal_leaves_no_unfinished_files(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "out" / "model"
    command = [sys.executable, "-m", "ouzel", "quantize", str(MODEL_DIRECTORY), str(out)]
    environment = os.environ | {"OUZEL_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while not list(out.parent.glob(".unfinished-*/.unfinished-*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait() == 128 + number
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["minilm", *release_only("further models of vectors", "qwen3-embedding", "qwen3-classifier")],
)
def test_a_model_of_vectors_is_refused(name: str, tmp_path: Path) -> None:
    model, message = str(SENTENCES / name), "only models that generate text can be calibrated"
    status, _, errors = run_ouzel("quantize", model, str(tmp_path / "out"), cache=tmp_path)
    assert (status, message in errors) == (1, True)
    status, _, errors = run_ouzel("pull", model, "--weights", "int4", "--calibrate", cache=tmp_path)
    assert (status, message in errors) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pull", "MODEL", "--calibrate"], "--calibrate requires --weights int4"),
        (
            ["pull", "MODEL", "--weights", "int8", "--calibrate"],
            "--calibrate: needs int4 in --weights, given",
        ),
        (
            ["pull", "MODEL", "--weights", "int4", "--calibration-text", "x"],
            "--calibration-text requires --calibrate",
        ),
        (
            ["pull", "MODEL", "--weights", "int4", "--calibrate", "--calibration-text", "/missing"],
            "--calibration-text: /missing cannot be read",
        ),
        (
            ["pull", "MODEL", "--weights", "bf16", "--recompress"],
            "--recompress: needs int8 or int4 in --weights, given",
        ),
        (
            ["quantize", str(IR), "/missing/out"],
            "mistral-int8 is an OpenVINO IR; SRC must be the checkpoint",
        ),
        (
            ["quantize", "/missing/model", "/missing/out"],
            "there is no directory or GGUF file /missing/model",
        ),
    ],
)
def test_nonsense_is_refused_in_one_line(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    spelled = [str(MODEL_DIRECTORY) if each == "MODEL" else each for each in arguments]
    status, _, errors = run_ouzel(*spelled, cache=tmp_path)
    assert status != 0
    assert message in errors


def test_an_empty_text_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    status, _, errors = run_ouzel(
        "quantize",
        str(MODEL_DIRECTORY),
        str(tmp_path / "out"),
        "--calibration-text",
        str(empty),
        cache=tmp_path,
    )
    assert status != 0
    assert "must hold text, it is empty" in errors
    assert not (tmp_path / "out").exists()


def test_pull_calibrates_once(tmp_path: Path, text: Path) -> None:
    arguments = [
        "pull",
        str(MODEL_DIRECTORY),
        "--weights",
        "int4",
        "--calibrate",
        "--calibration-text",
        str(text),
    ]
    status, output, _ = run_ouzel(*arguments, cache=tmp_path / "cache")
    assert status == 0
    assert "weights (int4) are made in" in output
    assert re.search(r"-int4(,packed)?,calibrated-", output)
    assert "weights (int4) are stored already" in run_ouzel(*arguments, cache=tmp_path / "cache")[1]
