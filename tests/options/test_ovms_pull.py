"""`--pull` and `--configure` do the work that OVMS's documents describe; the hub is a local one."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from ouzel.cli.app import main
from ouzel.demo import MODEL_DIRECTORY
from tests.backends.eagle_heads import HEADS
from tests.cli.test_pull import environment
from tests.model_store.hub import Hub, serving_hub
from tests.options.ovms_command import run_ovms, run_ovms_alone
from tests.options.read_graphs import read_graph_fields, read_graph_options
from tests.options.test_options import parse
from tests.serve.running import serving
from tests.serve.test_adapters import demo_adapter

Output = pytest.CaptureFixture[str]
SENTENCES = Path(__file__).parents[1] / "backends" / "golden_sentences"


@pytest.fixture
def hub() -> Iterator[Hub]:
    """Runs a hub that has the demo model under the name owner/model."""
    with serving_hub(MODEL_DIRECTORY) as hub:
        yield hub


@pytest.fixture
def env(hub: Hub, tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, hub.url)


def test_a_model_is_pulled_into_the_repository_with_a_graph_of_the_given_options(
    env: Mapping[str, str], tmp_path: Path
) -> None:
    models = tmp_path / "models"
    pull = (
        f"ovms --pull --source_model owner/model --model_repository_path {models} "
        "--task text_generation"
    )
    options = (
        "--target_device CPU --max_num_seqs 7 --cache_size 3 --kv_cache_precision u8 "
        "--tool_parser hermes3"
    )
    status, output, _ = run_ovms_alone(
        f"{pull} {options} --enable_prefix_caching false --pipeline_type LM_CB", env
    )

    directory = models / "owner" / "model"
    assert (status, output) == (
        0,
        [
            f"Model: owner/model downloaded to: {directory}",
            f"Graph: graph.pbtxt created in: {directory}",
        ],
    )
    assert (directory / "model.safetensors").read_bytes() == (
        MODEL_DIRECTORY / "model.safetensors"
    ).read_bytes()
    assert not any(path.is_symlink() for path in directory.rglob("*"))
    assert [path.name for path in directory.parent.iterdir()] == ["model"]
    assert read_graph_options(directory) == {
        "model": str(directory),
        "device": "CPU",
        "max_num_seqs": "7",
        "kv_cache_gib": "3",
        "kv_cache_dtype": "u8",
        "tool_parser": "hermes3",
        "prefix_caching": "false",
    }


@pytest.mark.release("adapters and second pulls with OVMS's options")
def test_a_second_pull_writes_the_graph_anew_and_keeps_the_model(
    hub: Hub, env: Mapping[str, str], tmp_path: Path
) -> None:
    models = tmp_path / "models"
    directory = models / "owner" / "model"
    pull = (
        f"ovms --pull --source_model owner/model --model_repository_path {models} "
        "--task text_generation"
    )
    run_ovms_alone(f"{pull} --max_num_seqs 7", env)
    (directory / "config.json").write_text("{}")
    hub.requests.clear()

    _, output, _ = run_ovms_alone(f"{pull} --max_num_seqs 5", env)
    assert (
        output[0]
        == f"Path already exists on local filesystem. Skipping download to path: {directory}"
    )
    assert hub.requests == []
    assert read_graph_options(directory)["max_num_seqs"] == "5"
    assert (directory / "config.json").read_text() == "{}"

    run_ovms_alone(f"{pull} --overwrite_models", env)
    assert (directory / "config.json").read_bytes() == (
        MODEL_DIRECTORY / "config.json"
    ).read_bytes()
    assert "max_num_seqs" not in read_graph_options(directory)


def test_a_pull_that_fails_leaves_nothing_in_the_repository(
    env: Mapping[str, str], tmp_path: Path
) -> None:
    models = tmp_path / "models"
    status, output, errors = run_ovms_alone(
        f"ovms --pull --source_model owner/missing --model_repository_path {models}", env
    )
    assert (status, output) == (1, [])
    assert "has no model owner/missing" in errors
    assert not models.exists()


def test_another_kind_of_model_is_not_pulled(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "model_index.json").write_text("{}")
    with serving_hub(repository) as hub:
        pull = (
            f"ovms --pull --source_model owner/model --model_repository_path {tmp_path / 'models'}"
        )
        status, output, errors = run_ovms_alone(pull, environment(tmp_path, hub.url))
    assert (status, output) == (1, [])
    assert "owner/model holds no supported model: it has no config.json" in errors
    assert not (tmp_path / "models").exists()


def test_a_repository_that_cannot_be_written_is_named(env: Mapping[str, str]) -> None:
    pull = "ovms --pull --source_model owner/model --model_repository_path /proc/models"
    status, output, errors = run_ovms_alone(pull, env)
    assert (status, output) == (2, [])
    assert "--model_repository_path: /proc/models: No such file or directory" in errors


def test_the_task_and_the_name_may_be_left_out(env: Mapping[str, str], tmp_path: Path) -> None:
    variables = {**env, "OVMS_MODEL_REPOSITORY_PATH": str(tmp_path)}
    assert run_ovms_alone("ovms --pull --model_name owner/model", variables)[0] == 0
    assert read_graph_fields(tmp_path / "owner" / "model") == (
        "HttpLLMCalculator",
        {"models_path": "./", "enable_prefix_caching": "true"},
    )


def test_a_draft_model_is_pulled_beside_its_model(env: Mapping[str, str], tmp_path: Path) -> None:
    pull = (
        f"ovms --pull --source_model owner/model --model_repository_path {tmp_path} "
        "--task text_generation"
    )
    _, output, _ = run_ovms_alone(f"{pull} --draft_source_model owner/model", env)
    directory = tmp_path / "owner" / "model"
    assert output[1] == f"Draft model: owner-model downloaded to: {directory / 'owner-model'}"
    assert read_graph_options(directory)["draft_model"] == str(directory / "owner-model")
    assert (directory / "owner-model" / "config.json").is_file()
    started = (
        f"--source_model owner/model --model_repository_path {tmp_path} "
        "--draft_source_model owner/model"
    )
    assert parse("--profile", "ovms", *started.split()).model.draft_model == str(
        directory / "owner-model"
    )


def test_weights_in_files_of_torch_are_pulled(tmp_path: Path) -> None:
    """The hub has them for repositories without safetensors, as older EAGLE-3 heads."""
    with serving_hub(HEADS / "qwen3-eagle") as hub:
        run_ovms_alone(
            f"ovms --pull --source_model owner/model --model_repository_path {tmp_path / 'models'} "
            "--task text_generation",
            environment(tmp_path, hub.url),
        )
    assert (tmp_path / "models" / "owner" / "model" / "pytorch_model.bin").is_file()


def test_a_single_gguf_file_of_a_repository_is_pulled(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for name in ("x-Q4_K_M-00001-of-00002.gguf", "x-Q4_K_M-00002-of-00002.gguf", "x-Q8_0.gguf"):
        (repository / name).write_text(name)
    with serving_hub(repository) as hub:
        env = environment(tmp_path, hub.url)
        pull = (
            f"ovms --pull --source_model owner/model --model_repository_path {tmp_path / 'models'}"
        )
        status, _, _ = run_ovms_alone(f"{pull} --gguf_filename x-Q4_K_M-00001-of-00002.gguf", env)
        missing = run_ovms_alone(f"{pull} --gguf_filename x-Q5_K_M.gguf", env)
    directory = tmp_path / "models" / "owner" / "model"
    assert status == 0
    assert read_graph_options(directory)["model"] == str(directory / "x-Q4_K_M-00001-of-00002.gguf")
    assert sorted(path.name for path in directory.glob("*.gguf")) == [
        "x-Q4_K_M-00001-of-00002.gguf",
        "x-Q4_K_M-00002-of-00002.gguf",
    ]
    assert (
        "owner/model has no file x-Q5_K_M.gguf; its GGUF files: x-Q4_K_M-00001-of-00002.gguf, "
        in missing[2]
    )


def test_a_start_pulls_the_model_that_the_repository_lacks(
    env: Mapping[str, str], tmp_path: Path
) -> None:
    models = tmp_path / "models"
    command = (
        f"--source_model owner/model --model_repository_path {models} --rest_port 0 "
        "--task text_generation"
    )
    start = ("--profile", "ovms", *command.split(), "--tool_parser", "hermes3")
    with serving(*start, cache_dir=tmp_path / "cache", environment=env) as server:
        answer = httpx.post(
            f"{server.root}/v3/completions",
            json={"model": "owner/model", "prompt": "1", "max_tokens": 1},
            timeout=None,
        )
    assert answer.json()["model"] == "owner/model"
    assert (
        f"Model: owner/model downloaded to: {models / 'owner' / 'model'}\n" in server.announcement
    )
    assert read_graph_options(models / "owner" / "model")["tool_parser"] == "hermes3"


@pytest.mark.release("vector models that are pulled or inspected")
@pytest.mark.parametrize(
    ("model", "options", "fields", "expected"),
    [
        ("minilm", "", {}, {"task": "embed", "normalize": "true"}),
        (
            "minilm",
            (
                "--pooling LAST --normalize false --truncate true --max_length 64 --num_streams 2 "
                "--target_device CPU"
            ),
            {
                "pooling": "LAST",
                "normalize_embeddings": "false",
                "truncate": "true",
                "max_length": "64",
            },
            {
                "pooling": "lasttoken",
                "normalize": "false",
                "truncate": "true",
                "max_model_len": "64",
                "device": "CPU",
            },
        ),
        (
            "bge",
            "--task embeddings --pooling CLS",
            {"pooling": "CLS"},
            {"pooling": "cls", "task": "embed"},
        ),
        (
            "cross-bert",
            "--max_allowed_chunks 7",
            {"max_allowed_chunks": "7"},
            {"max_document_chunks": "7"},
        ),
        ("cross-bert", "--task rerank --model_name ranker", {}, {"task": "score"}),
    ],
)
def test_a_model_of_vectors_is_pulled_with_a_graph_of_its_own(
    model: str, options: str, fields: dict[str, str], expected: dict[str, object], tmp_path: Path
) -> None:
    with serving_hub(SENTENCES / model) as hub:
        pull = (
            "ovms --pull --source_model owner/model "
            f"--model_repository_path {tmp_path / 'models'} {options}"
        )
        status, _, errors = run_ovms_alone(pull, environment(tmp_path, hub.url))
    directory = tmp_path / "models" / "owner" / "model"
    assert (status, errors) == (0, "")
    calculator, written = read_graph_fields(directory)
    assert calculator == (
        "RerankCalculatorOV" if model.startswith("cross") else "EmbeddingsCalculatorOV"
    )
    assert {name: written[name] for name in fields} == fields
    read = read_graph_options(directory)
    assert {name: read[name] for name in expected} == expected
    assert parse("--profile", "ovms", "--model_path", str(directory)).model.model == str(directory)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--pull --source_model owner/model", "--pull: needs --model_repository_path"),
        (
            "--pull --model_repository_path /x",
            "--pull: needs --source_model, as owner/name, given ''",
        ),
        (
            "--pull --source_model x --model_repository_path /x",
            "needs --source_model, as owner/name, given 'x'",
        ),
        (
            "--pull --source_model owner/.. --model_repository_path /x",
            "--source_model: must be owner/name, given 'owner/..'",
        ),
        (
            (
                "--pull --source_model owner/model --model_repository_path /x "
                "--gguf_filename ../x.gguf"
            ),
            "--gguf_filename: must be the name of a GGUF file of the repository, given '../x.gguf'",
        ),
        (
            "--pull --source_model owner/model --model_repository_path /x --task image_generation",
            "--task: must be one of",
        ),
        (
            "--pull --source_model owner/model --model_repository_path /x --max_num_seqs 0",
            "--max-num-seqs: ",
        ),
        ("--configure", "--configure: needs --model_path, the directory of a model, given ''"),
        (
            "--configure --model_path /nowhere",
            "--configure: needs --model_path, the directory of a model, given",
        ),
        ("--configure --model_path /proc", "since /proc has no config.json"),
        ("--configure --pull", "--pull: cannot be used with --configure"),
    ],
)
def test_a_wrong_command_is_refused_before_anything_is_done(
    arguments: str, message: str, capsys: Output
) -> None:
    status, output, errors = run_ovms(f"ovms {arguments}", capsys)
    assert (status, output) == (2, [])
    assert message in errors


def test_other_commands_pull_nothing(capsys: Output) -> None:

    assert (
        main(
            [
                "inspect",
                "--profile",
                "ovms",
                "--pull",
                "--source_model",
                "a/b",
                "--model_repository_path",
                "/x",
            ]
        )
        == 2
    )
    assert "--pull: is for ouzel serve only, given to ouzel inspect" in capsys.readouterr().err


@pytest.mark.release("adapters and second pulls with OVMS's options")
def test_a_start_pulls_an_adapter_of_the_hub_and_serves_it(tmp_path: Path) -> None:
    repository, models = tmp_path / "repository", tmp_path / "models"
    shutil.copytree(MODEL_DIRECTORY, repository)
    adapter = demo_adapter(1).write(tmp_path / "adapter")
    for path in adapter.iterdir():
        shutil.copy(path, repository)
    command = (
        f"--source_model owner/model --model_repository_path {models} --rest_port 0 "
        "--source_loras poet=owner/model"
    )
    with serving_hub(repository) as hub:
        env = environment(tmp_path, hub.url)
        start = ("--profile", "ovms", *command.split(), "--no-store")
        with serving(*start, cache_dir=tmp_path / "cache", environment=env) as server:
            ids = [model["id"] for model in httpx.get(f"{server.root}/v3/models").json()["data"]]
    directory = models / "owner" / "model"
    assert ids == ["owner/model", "poet"]
    assert (
        f"LoRA adapter: poet downloaded to: {directory / 'loras' / 'owner' / 'model'}\n"
        in server.announcement
    )
    assert sorted(path.name for path in (directory / "loras" / "owner" / "model").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
