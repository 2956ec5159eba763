"""`ouzel inspect` describes a model as `ouzel serve` would serve it."""

import json
import logging
import shutil
from pathlib import Path

import msgspec
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.cli.app import main
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.errors import ModelLoadError
from ouzel.serve.engine_factories import openvino_engine
from tests.backends import GOLDEN
from tests.backends.eagle_heads import HEADS, copy_head_as_ir
from tests.release_only import release_only

ASSISTANTS = GOLDEN.parent / "golden_assistant"
DRAFTS = {  # a draft, its model, and its line
    "head": (HEADS / "llama-specforge", GOLDEN / "llama", "EAGLE-3 head, "),
    "assistant": (ASSISTANTS / "gemma4-unified", GOLDEN / "gemma4-unified", "assistant, "),
    "model": (MODEL_DIRECTORY, MODEL_DIRECTORY, "draft model, 3.97 M parameters, "),
}
IRS = [
    GOLDEN.parent / "optimum_ir" / "mistral-int8",
    GOLDEN.parent / "optimum_ir_vision" / "qwen2_vl-int8",
]
FURTHER = pytest.mark.release("further kinds of models that make vectors, inspected and loaded")
ENGINES = {
    # the number of slots follows from their size
    "as it comes": EngineConfig(kv_cache_gib=0.01, state_cache_gib=0.001),
    "exact": EngineConfig(kv_cache_gib=0.02, precision="f32", kv_cache_dtype="f32"),
}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize(
    "directory",
    [
        GOLDEN / "qwen3_5",
        GOLDEN / "gemma4-shared",  # layers read the caches of other layers
        IRS[0],
        *release_only(
            "further models served as they were inspected",
            *(GOLDEN / name for name in ("qwen3", "mistral", "lfm2")),
            *IRS[1:],
        ),
    ],
    ids=lambda path: path.name,
)
def test_a_model_is_served_as_it_was_inspected(
    directory: Path, engine: EngineConfig, tmp_path: Path
) -> None:
    model = ModelConfig(model=str(directory), weights="int4", cache_dir=str(tmp_path))
    found = inspect_model(model, engine)
    info = create_runner(model, engine).info
    assert (found.model_type, found.max_model_len) == (info.model_type, info.max_model_len)
    assert (found.precision, found.kv_cache_dtype) == (info.precision, info.kv_cache_dtype)
    assert found.is_deterministic == info.is_deterministic
    assert found.num_kv_tokens == info.num_blocks * info.block_size
    assert (found.max_num_seqs, found.num_state_slots) == (info.max_num_seqs, info.num_state_slots)
    for written in tmp_path.glob("*/weights.bin"):  # each part begins at a multiple of 64 bytes
        assert found.weight_bytes <= written.stat().st_size < found.weight_bytes + 64 * 100


@pytest.mark.parametrize("weights", ["int4", "bf16"])
def test_a_model_that_gives_the_same_answers_under_any_load_is_told(
    weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ModelConfig(model=str(MODEL_DIRECTORY), weights=weights, cache_dir=str(tmp_path))
    engine = EngineConfig(kv_cache_gib=0.1)
    is_deterministic = create_runner(model, engine).info.is_deterministic
    assert inspect_model(model, engine).is_deterministic == is_deterministic
    assert main(["inspect", "--weights", weights, "--kv-cache-gib", "0.1"]) == 0
    assert ("under any load" in capsys.readouterr().out) == is_deterministic


@pytest.mark.release("vector models that are pulled or inspected")
@pytest.mark.parametrize(
    "name",
    [
        *("bert-dense", "qwen3-classifier"),
        *(
            pytest.param(name, marks=FURTHER)
            for name in ("minilm", "cross-bert-labels", "qwen3-embedding")
        ),
    ],
)
def test_a_model_that_makes_vectors_is_served_as_it_was_inspected(
    name: str, tmp_path: Path
) -> None:
    model = ModelConfig(
        model=str(GOLDEN.parent / "golden_sentences" / name), cache_dir=str(tmp_path)
    )
    engine = EngineConfig(kv_cache_gib=0.01)
    found = inspect_model(model, engine)
    info = openvino_engine(
        {"model": msgspec.to_builtins(model), "engine": msgspec.to_builtins(engine)}
    ).info
    assert (found.task, found.vector_size, found.precision) == (
        info.task,
        info.vector_size,
        info.precision,
    )
    assert (found.model_type, found.max_model_len) == (info.model_type, info.max_model_len)
    assert found.num_kv_tokens == info.num_blocks * info.block_size
    [written] = tmp_path.glob("*/weights.bin")
    assert found.weight_bytes <= written.stat().st_size < found.weight_bytes + 64 * 100


def test_an_encoder_is_told_without_a_cache_and_a_chat(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(GOLDEN.parent / "golden_sentences" / "minilm")]) == 0
    said = capsys.readouterr().out
    assert "vectors     embeddings of 32 values" in said
    assert "tokens of a text" in said
    assert "KV cache" not in said and "chat" not in said


def test_a_deterministic_model_is_named_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--deterministic"]) == 0
    assert "answers     the same for a greedy or seeded request" in capsys.readouterr().out
    for name, reason in (
        ("golden/qwen3_5", "the states of recurrent layers"),
        ("golden_vision/gemma3", "computes the tokens of an image together"),
    ):
        assert main(["inspect", str(GOLDEN.parent / name), "--deterministic"]) != 0
        assert f"deterministic: {reason}" in capsys.readouterr().err.replace("a gemma3 ", "")


def test_nothing_is_written_and_no_weights_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = Path(shutil.copytree(GOLDEN / "llama", tmp_path / "model"))
    weights = directory / "model.safetensors"
    content = weights.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    # all weights become NaN
    weights.write_bytes(content[:start] + b"\xff" * (len(content) - start))
    assert main(["inspect", str(directory), "--cache-dir", str(tmp_path / "cache")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("model       model: llama, ")
    assert "no chat template: only completions" in said
    assert not (tmp_path / "cache").exists()


def test_the_demo_model_is_inspected_without_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--max-model-len", "2048", "--kv-cache-gib", "0.1"]) == 0
    said = capsys.readouterr().out
    assert "ouzel-demo: qwen3, 3.97 M parameters" in said
    assert "context     2048 tokens" in said
    assert "tool calls read as hermes" in said


def test_a_model_that_could_not_be_served_is_refused_as_by_serve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = Path(shutil.copytree(GOLDEN / "llama", tmp_path / "model"))
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"intermediate_size": 96}))
    assert main(["inspect", str(directory)]) == 1
    assert (
        "tensor model.layers.0.mlp.gate_proj.weight has the shape [128, 64]"
        in capsys.readouterr().err
    )
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "llamma"}))
    assert main(["inspect", str(directory)]) == 1
    assert "model_type llamma is not supported; nearest: llama" in capsys.readouterr().err


def test_options_are_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(MODEL_DIRECTORY), "--max-model-len", "5000"]) == 2
    assert (
        "--max-model-len: must be <= 4096, the model's own limit, given 5000"
        in capsys.readouterr().err
    )
    assert (
        main(
            ["inspect", str(GOLDEN / "lfm2"), "--max-model-len", "32000", "--kv-cache-gib", "0.001"]
        )
        == 1
    )
    assert "the tokens of the KV cache, given 32000" in capsys.readouterr().err


@pytest.mark.parametrize("weights", ["auto", "bf16", "f32,head=auto"])
def test_recompress_needs_an_integer_width(
    weights: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(MODEL_DIRECTORY), "--recompress", "--weights", weights]) == 2
    message = f"--recompress: needs int8 or int4 in --weights, given --weights {weights}"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "context", "factors"),
    [
        (
            [],
            "32 tokens for a prompt and its answer (the model's own limit is 4096);",
            "short factors serve;",
        ),
        (
            ["--max-model-len", "31"],
            "31 tokens for a prompt and its answer (the model's own limit",
            "short factors serve;",
        ),
        (
            ["--max-model-len", "64"],
            "64 tokens for a prompt and its answer (the model's own limit",
            "long factors serve all",
        ),
        (
            ["--max-model-len", "4096"],
            "4096 tokens for a prompt and its answer;",
            "long factors serve all",
        ),
    ],
)
def test_the_context_of_longrope_is_printed(
    options: list[str], context: str, factors: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(GOLDEN / "phi3"), "--kv-cache-gib", "0.01", *options]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"context {context}" in said
    assert f"LongRoPE's {factors}" in said


def test_a_model_with_one_set_of_frequencies_says_nothing_of_longrope(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["inspect", str(GOLDEN / "llama"), "--kv-cache-gib", "0.0001"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "(the model's own limit is 40960, the cache holds no more)" in said
    assert "LongRoPE" not in said


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_has_a_line_of_its_own(
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draft, directory, line = DRAFTS[name]
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "draft").symlink_to(draft)
    facts = []
    for options in ([], ["--draft-model", "~/draft"]):
        assert main(["inspect", str(directory), "--kv-cache-gib", "0.1", *options]) == 0
        said = " ".join(capsys.readouterr().out.split())
        facts.append(said.partition(" kernels ")[0])
    assert facts[0] == facts[1], "the model and its weights are the same"
    assert f" draft {line}" in said
    assert ("and a KV cache of " in said) == (name == "model")


def test_a_draft_that_a_server_refuses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recurrent = Path(shutil.copytree(GOLDEN / "qwen3_5", tmp_path / "recurrent"))
    shutil.copy(MODEL_DIRECTORY / "tokenizer.json", recurrent)
    encoder = Path(shutil.copytree(GOLDEN.parent / "golden_sentences" / "minilm", tmp_path / "e"))
    shutil.copy(MODEL_DIRECTORY / "tokenizer.json", encoder)
    two_way = Path(
        shutil.copytree(GOLDEN.parent / "golden_vision" / "paligemma", tmp_path / "two_way")
    )
    shutil.copy(MODEL_DIRECTORY / "tokenizer.json", two_way)
    for model, draft, message in (
        (GOLDEN / "llama", ASSISTANTS / "gemma4", "an assistant drafts for a Gemma 4 only"),
        (GOLDEN / "gemma4-unified", ASSISTANTS / "gemma4", "draft_model: "),
        (IRS[0], ASSISTANTS / "gemma4", "which an OpenVINO IR does not give"),
        (IRS[0], HEADS / "llama-specforge", "an OpenVINO IR does not give the rows"),
        (MODEL_DIRECTORY, tmp_path / "nowhere", "there is no directory or GGUF file"),
        (MODEL_DIRECTORY, recurrent, "draft_model: must have no recurrent layers"),
        (MODEL_DIRECTORY, encoder, "draft_model: must have tokens as its output, given a bert"),
        (MODEL_DIRECTORY, two_way, "must not have tokens of a prompt that see later ones"),
        (MODEL_DIRECTORY, GOLDEN / "llama", "llama/tokenizer.json"),
    ):
        assert main(["inspect", str(model), "--draft-model", str(draft)]) == 1, draft
        assert message in capsys.readouterr().err
    missing = ModelConfig(model=str(MODEL_DIRECTORY), draft_model=str(tmp_path / "nowhere"))
    with pytest.raises(ModelLoadError, match="nowhere is not a directory"):
        inspect_model(missing, EngineConfig())


@pytest.mark.parametrize("name", ["head", "assistant"])
def test_a_cache_beside_a_draft_is_as_large_as_in_a_server(name: str, tmp_path: Path) -> None:
    draft, directory, _ = DRAFTS[name]
    model = ModelConfig(
        model=str(directory), draft_model=str(draft), weights="int8", cache_dir=str(tmp_path)
    )
    engine = ENGINES["exact"]
    found, info = inspect_model(model, engine), create_runner(model, engine).info
    assert found.num_kv_tokens == info.num_blocks * info.block_size
    assert found.is_deterministic == info.is_deterministic
    assert found.draft is not None
    size = found.weight_bytes + found.draft.weight_bytes
    written = sum(each.stat().st_size for each in tmp_path.glob("*/weights.bin"))
    assert size <= written < size + 2 * 64 * 100


@pytest.mark.parametrize("name", ["head", "assistant"])
def test_the_kernels_beside_a_draft_are_the_kernels_of_a_server(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The draft and the head of its model are graphs of their own."""
    draft, directory, _ = DRAFTS[name]
    model = ModelConfig(
        model=str(directory), draft_model=str(draft), weights="int8", cache_dir=str(tmp_path)
    )
    engine = ENGINES["as it comes"]
    with caplog.at_level(logging.INFO):
        create_runner(model, engine)
    found = inspect_model(model, engine).kernels
    messages = [each.getMessage() for each in caplog.records]
    assert [each for each in messages if " multiply " in each or " multiplies " in each] == (
        [found] if found else []
    )


@pytest.mark.parametrize("command", ["inspect", "serve"])
def test_a_head_as_openvino_ir_is_not_recommended_as_a_draft(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = copy_head_as_ir(tmp_path / "head")
    assert main([command, str(directory)]) == 1
    errors = capsys.readouterr().err
    assert f"{directory} is an EAGLE-3 head as OpenVINO IR, which cannot be read; name" in errors


@pytest.mark.parametrize(
    ("directory", "kind"),
    [
        (HEADS / "llama-specforge", "an EAGLE-3 head"),
        (HEADS / "gpt-oss-speculators", "an EAGLE-3 head"),
        (ASSISTANTS / "gemma4", "an assistant, which drafts for a Gemma 4,"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "serve"])
def test_a_draft_alone_is_refused(
    command: str, directory: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(directory)]) == 1
    message = f"{directory} is {kind} and cannot be served alone: name it as --draft-model of"
    assert message in capsys.readouterr().err
