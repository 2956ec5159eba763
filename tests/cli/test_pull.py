"""Runs `ouzel pull` against a stand-in for the hub, as a user does."""

import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.encoding import create_encoder_runner, is_encoder
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from tests.backends.eagle_heads import copy_head_as_ir
from tests.model_store.hub import REVISION, TOKEN, Hub, serving_hub
from tests.serve.forks import start_command

SIZE = 24 * 2**20
HUB_VARIABLES = {
    "HF_TOKEN",
    "HF_HUB_OFFLINE",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "HF_TOKEN_PATH",
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    directory = tmp_path / "repository"
    directory.mkdir()
    (directory / "config.json").write_text('{"model_type": "qwen3"}')
    (directory / "model.safetensors").write_bytes(random.Random(0).randbytes(SIZE))
    with serving_hub(directory) as hub:
        yield hub


def environment(tmp_path: Path, url: str, **variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in HUB_VARIABLES}
    return (
        inherited
        | {
            "HF_ENDPOINT": url,
            "HF_HOME": str(tmp_path / "hf"),
            "OUZEL_CACHE_DIR": str(tmp_path / "cache"),
        }
        | variables
    )


def start_pull(*arguments: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
    return start_command(["pull", *arguments], env)


def pull(*arguments: str, env: Mapping[str, str]) -> tuple[int, str, str]:
    process = start_pull(*arguments, env=env)
    output, errors = process.communicate()
    assert "Traceback" not in errors
    return process.returncode, output, errors


def read_downloaded(tmp_path: Path) -> bytes:
    return (
        tmp_path / f"hf/hub/models--owner--model/snapshots/{REVISION}/model.safetensors"
    ).read_bytes()


def read_original(hub: Hub) -> bytes:
    return (hub.directory / "model.safetensors").read_bytes()


def test_a_model_is_fetched_and_the_command_that_serves_it_is_printed(
    hub: Hub, tmp_path: Path
) -> None:
    status, output, _ = pull("owner/model", env=environment(tmp_path, hub.url))
    assert status == 0
    assert read_downloaded(tmp_path) == read_original(hub)
    assert output.endswith("to serve it: ouzel serve owner/model\n")
    assert "25.2 MB" in output


def test_files_of_torch_are_fetched_only_without_safetensors(hub: Hub, tmp_path: Path) -> None:
    env = environment(tmp_path, hub.url)
    torch_file = hub.directory / "pytorch_model.bin"
    torch_file.write_bytes(b"weights")
    (hub.directory / "2_Dense").mkdir()
    (hub.directory / "2_Dense" / "pytorch_model.bin").write_bytes(b"dense")
    assert pull("owner/model", env=env)[0] == 0
    assert [path.parent.name for path in (tmp_path / "hf").rglob("*.bin")] == ["2_Dense"]

    (hub.directory / "model.safetensors").unlink()
    (hub.directory / "adapter_model.safetensors").write_bytes(b"an adapter, no weights of a model")
    assert pull("owner/model", env=env | {"HF_HOME": str(tmp_path / "other")})[0] == 0
    fetched = {path.read_bytes() for path in (tmp_path / "other").rglob("*.bin")}
    assert fetched == {b"weights", b"dense"}


def test_a_transfer_that_is_cut_off_goes_on_where_it_ended(hub: Hub, tmp_path: Path) -> None:
    hub.cut_after_bytes, hub.num_cuts = 10 * 2**20 + 5, 2
    status, _, _ = pull("owner/model", env=environment(tmp_path, hub.url))
    assert status == 0
    assert read_downloaded(tmp_path) == read_original(hub)
    assert len(hub.ranges()) == 2


def test_a_pull_that_is_interrupted_is_taken_up_by_the_next(hub: Hub, tmp_path: Path) -> None:
    env = environment(tmp_path, hub.url)
    hub.cut_after_bytes, hub.num_cuts = 9 * 2**20, 1000
    process = start_pull("owner/model", env=env)
    while not hub.ranges():  # it waits before it tries again
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    [incomplete] = (tmp_path / "hf").rglob("*.incomplete")
    here = incomplete.stat().st_size
    assert 0 < here < SIZE

    hub.num_cuts = 0
    hub.requests.clear()
    assert pull("owner/model", env=env)[0] == 0
    assert hub.ranges() == [f"bytes={here}-"]
    assert read_downloaded(tmp_path) == read_original(hub)
    assert list((tmp_path / "hf").rglob("*.incomplete")) == []


def test_a_part_of_another_file_is_noticed_by_its_checksum(hub: Hub, tmp_path: Path) -> None:
    env = environment(tmp_path, hub.url)
    hub.cut_after_bytes, hub.num_cuts = 9 * 2**20, 1000
    process = start_pull("owner/model", env=env)
    while not hub.ranges():
        time.sleep(0.02)
    process.kill()
    process.communicate()
    [incomplete] = (tmp_path / "hf").rglob("*.incomplete")
    with incomplete.open("r+b") as file:
        file.write(b"damaged")

    hub.num_cuts = 0
    status, _, errors = pull("owner/model", env=env)
    assert status == 1
    assert "model.safetensors came otherwise than the hub says" in errors
    assert pull("owner/model", env=env)[0] == 0
    assert read_downloaded(tmp_path) == read_original(hub)


@pytest.mark.release("hubs that answer nonsense")
def test_a_server_without_ranges_sends_all_of_it_again(hub: Hub, tmp_path: Path) -> None:
    hub.gives_ranges = False
    hub.cut_after_bytes, hub.num_cuts = 9 * 2**20, 2
    assert pull("owner/model", env=environment(tmp_path, hub.url))[0] == 0
    assert read_downloaded(tmp_path) == read_original(hub)


def find_unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    "variables", [{}, {"HF_HUB_OFFLINE": "1"}], ids=["no network", "HF_HUB_OFFLINE"]
)
def test_without_network_the_cache_is_enough(
    hub: Hub, tmp_path: Path, variables: dict[str, str]
) -> None:
    assert pull("owner/model", env=environment(tmp_path, hub.url))[0] == 0
    status, output, _ = pull(
        "owner/model", env=environment(tmp_path, find_unused_address(), **variables)
    )
    assert status == 0
    assert REVISION in output


@pytest.mark.release("hubs that answer nonsense")
def test_a_network_that_requires_a_log_in_is_no_connection(hub: Hub, tmp_path: Path) -> None:
    env = environment(tmp_path, hub.url)
    assert pull("owner/model", env=env)[0] == 0
    hub.is_hidden = True
    assert pull("owner/model", env=env)[0] == 0
    assert (
        "cannot be reached (no network?), and owner/other is not in the cache"
        in pull("owner/other", env=env)[2]
    )


def test_an_unusable_proxy_is_reported(tmp_path: Path) -> None:
    status, _, errors = pull(
        "owner/model", env=environment(tmp_path, find_unused_address(), ALL_PROXY="nothing://x")
    )
    assert status == 1
    assert "Unknown scheme for proxy URL" in errors


def test_without_network_one_line_says_so(tmp_path: Path) -> None:
    url = find_unused_address()
    status, output, errors = pull("owner/model", env=environment(tmp_path, url))
    assert (status, output, errors.count("\n")) == (1, "", 1)
    assert f"{url} cannot be reached (no network?), and owner/model is not in the cache" in errors


@pytest.mark.release("hubs that answer nonsense")
def test_without_network_files_that_are_missing_in_the_cache_are_missed(
    hub: Hub, tmp_path: Path
) -> None:
    assert pull("owner/model", env=environment(tmp_path, hub.url))[0] == 0
    (tmp_path / f"hf/hub/models--owner--model/snapshots/{REVISION}/model.safetensors").unlink()
    status, _, errors = pull("owner/model", env=environment(tmp_path, find_unused_address()))
    assert status == 1
    assert "files of owner/model are missing in the cache" in errors


def test_a_model_that_is_not_there_or_gated_is_told_from_the_others(
    hub: Hub, tmp_path: Path
) -> None:
    env = environment(tmp_path, hub.url)
    status, _, errors = pull("owner/missing", env=env)
    assert status == 1
    assert (
        f"{hub.url} has no model owner/missing, or it is private: "
        "set HF_TOKEN to a token with access" in errors
    )
    _, _, errors = pull("owner/gated", env=env)
    assert (
        f"owner/gated is gated: ask for access at {hub.url}/owner/gated, then set HF_TOKEN"
        in errors
    )
    _, _, errors = pull("owner/gated", env=env | {"HF_TOKEN": "hf_wrong"})
    assert "the token in HF_TOKEN does not give access" in errors
    assert "hf_wrong" not in errors
    assert pull("owner/gated", env=env | {"HF_TOKEN": TOKEN})[0] == 0


def test_weights_are_made_once(tmp_path: Path) -> None:
    with serving_hub(MODEL_DIRECTORY) as hub:
        env = environment(tmp_path, hub.url)
        _, first, _ = pull("owner/model", "--weights", "int4", env=env)
        _, second, _ = pull("owner/model", "--weights", "int4", env=env)
    assert re.search(r"weights \(int4\) are made in \d+ s: \S+-int4(,packed)?-", first)
    assert "weights (int4) are stored already" in second
    assert second.endswith("ouzel serve owner/model --weights int4\n")


def test_the_weights_of_an_assistant_are_the_ones_that_a_server_takes(tmp_path: Path) -> None:
    backends = Path(__file__).parents[1] / "backends"
    directory = backends / "golden_assistant" / "gemma4-unified"
    env = environment(tmp_path, find_unused_address())
    status, output, _ = pull(str(directory), "--weights", "int8", env=env)
    assert status == 0
    assert f"to serve it: ouzel serve MODEL --draft-model {directory}" in output
    [entry] = re.findall(r"weights \(int8\) are made in \d+ s: (\S+),", output)
    inode = Path(entry, "weights.bin").stat().st_ino
    model = ModelConfig(
        model=str(backends / "golden" / "gemma4-unified"),
        draft_model=str(directory),
        weights="int8",
        cache_dir=str(Path(entry).parent),
    )
    create_runner(model, EngineConfig(kv_cache_gib=0.02))
    assert Path(entry, "weights.bin").stat().st_ino == inode
    assert len(list(Path(entry).parent.glob("*/weights.bin"))) == 2, "the model's and this one"


def test_a_head_is_pulled_without_its_weights(tmp_path: Path) -> None:
    directory = Path(__file__).parents[1] / "backends" / "golden_eagle" / "gpt-oss-speculators"
    env = environment(tmp_path, find_unused_address())
    status, output, _ = pull(str(directory), env=env)
    assert status == 0
    assert f"to serve it: ouzel serve MODEL --draft-model {directory}" in output
    for flags, named in (
        (("--weights", "int8"), "--weights"),
        (("--weights", "int4", "--calibrate"), "--calibrate"),
    ):
        status, _, errors = pull(str(directory), *flags, env=env)
        assert status == 1
        assert f"{named}: {directory.name} is an EAGLE-3 head, whose weights" in errors


def test_a_head_as_openvino_ir_is_refused_as_in_a_server(tmp_path: Path) -> None:
    directory = copy_head_as_ir(tmp_path / "head")
    status, output, errors = pull(str(directory), env=environment(tmp_path, find_unused_address()))
    assert status == 1
    assert "to serve it" not in output
    assert f"{directory} is an EAGLE-3 head as OpenVINO IR, which cannot be read; name" in errors


@pytest.mark.parametrize(
    ("flag", "about"),
    [
        ("--calibrate", "is an assistant, which reads no text of its own"),
        ("--mtp", "is an assistant, which has no prediction layer"),
    ],
)
def test_flags_that_do_not_fit_an_assistant_are_refused_before_weights_are_made(
    flag: str, about: str, tmp_path: Path
) -> None:
    directory = Path(__file__).parents[1] / "backends" / "golden_assistant" / "gemma4"
    env = environment(tmp_path, find_unused_address())
    status, output, errors = pull(str(directory), "--weights", "int4", flag, env=env)
    assert status == 1
    assert f"{flag}: gemma4 {about}" in errors
    assert "is in" not in output
    assert not (tmp_path / "cache").exists()


@pytest.mark.release("vector models that are pulled or inspected")
@pytest.mark.parametrize("name", ["minilm", "qwen3-embedding", "qwen3-classifier"])
def test_weights_of_a_model_of_vectors_are_the_ones_that_a_server_takes(
    name: str, tmp_path: Path
) -> None:
    directory = Path(__file__).parents[1] / "backends" / "golden_sentences" / name
    status, output, _ = pull(
        str(directory), "--weights", "int4", env=environment(tmp_path, find_unused_address())
    )
    assert status == 0
    [entry] = re.findall(r"weights \(int4\) are made in \d+ s: (\S+),", output)
    inode = Path(entry, "weights.bin").stat().st_ino
    model = ModelConfig(model=str(directory), weights="int4", cache_dir=str(Path(entry).parent))
    create = create_encoder_runner if is_encoder(directory) else create_runner
    create(model, EngineConfig()).close()
    assert [path for path in Path(entry).parent.iterdir() if "-int4" in path.name] == [Path(entry)]
    assert Path(entry, "weights.bin").stat().st_ino == inode, (
        "the server made no weights of its own"
    )


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ([], "the following arguments are required: MODEL"),
        ([""], "MODEL: must be owner/name, given ''"),
        (["owner/model", "--mtp"], "--mtp requires --weights"),
        (["owner/model", "--recompress"], "--recompress requires --weights"),
        (["owner/model", "--weights", "int5"], "--weights: a width must be one of"),
        (
            ["owner/model", "--port", "8000"],
            "unknown option --port; ouzel pull --help lists all options",
        ),
        (["./nowhere"], "there is no directory or GGUF file ./nowhere"),
    ],
)
def test_nonsense_is_refused_in_one_line(arguments: list[str], about: str, tmp_path: Path) -> None:
    status, output, errors = pull(*arguments, env=environment(tmp_path, find_unused_address()))
    assert status != 0
    assert (output, errors.count("\n")) == ("", 1)
    assert about in errors
