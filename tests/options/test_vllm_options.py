"""Options are honoured or refused, never ignored, when vLLM is the engine."""

from pathlib import Path

import pytest

from ouzel.cli.inspect import run as inspect
from ouzel.demo import MODEL_DIRECTORY
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.serve.open_models import open_model
from ouzel.serve.vllm_engine import child_spec, engine_arguments, link_to_server
from tests.backends import GOLDEN

PYTHON = ("--engine", "vllm", "--engine-python", __file__)  # any file: these tests start no engine
M = LocalModel(Path("m"), "m")
URL = ("--engine-url", "http://127.0.0.1:8000")


def parse(*arguments: str, **environment: str) -> Options:
    return read_command_line([*arguments], environment)


def check(directory: Path, *arguments: str) -> None:
    """Opens the model in the directory with these options, as every command does."""
    open_model(parse(str(directory), *arguments).all_models[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "vllm"), "--engine vllm: needs --engine-python, or --engine-url"),
        (("--engine-python", __file__), "--engine-python: needs --engine vllm"),
        (("--tensor-parallel-size", "2"), "--tensor-parallel-size: needs --engine vllm"),
        (("--engine-api-key", "key"), "--engine-api-key: needs --engine vllm"),
        (
            ("--engine", "vllm", "--engine-python", "/nowhere/python"),
            "--engine-python: must be a Python interpreter",
        ),
        (
            (*URL, "--engine", "openvino"),
            "--engine: must be vllm beside --engine-url, given openvino",
        ),
        (("--engine-url", "ftp://host"), "--engine-url"),
        (("--engine-url", "http://user:secret@host"), "--engine-url"),
        ((*PYTHON, "--engine-wait-s", "3"), "--engine-wait-s: needs --engine-url"),
        ((*PYTHON, "--engine-priorities"), "--engine-priorities: needs --engine-url"),
        *(
            ((*PYTHON, *option), f"{option[0].replace('--no-', '--')}: is not for --engine vllm")
            for option in (
                *(
                    ("--weights", "int4"),
                    ("--draft-model", "m"),
                    ("--mtp",),
                    ("--device", "GPU"),
                    ("--num-threads", "2"),
                ),
                *(("--prompt-lookup",), ("--state-cache-gib", "1"), ("--prefix-cache-dir", "d")),
                *(
                    ("--prefix-cache-dir-gib", "3"),
                    ("--grammar-timeout-s", "3"),
                    ("--no-engine-process",),
                ),
            )
        ),
        *(
            ((*URL, *option), f"{option[0].replace('--no-', '--')}: is not for --engine-url")
            for option in (
                *(
                    ("--weights", "int8"),
                    ("--replicas", "2"),
                    ("--precision", "bf16"),
                    ("--kv-cache-gib", "1"),
                    ("--no-prefix-caching",),
                ),
                *(
                    ("--tensor-parallel-size", "2"),
                    ("--engine-args", "{}"),
                    ("--engine-python", __file__),
                ),
            )
        ),
        ((*PYTHON, "--task", "embed"), "--task: must be generate with --engine vllm, given embed"),
        ((*URL, "--task", "score"), "--task: must be generate with --engine vllm, given score"),
        ((*URL, "--matryoshka"), "--matryoshka: is not for --engine-url"),
        ((*PYTHON, "--precision", "int8"), "--precision: must be one of auto, bf16, f16, f32"),
        ((*PYTHON, "--kv-cache-dtype", "u8"), "--kv-cache-dtype: must be one of auto, bf16, f16"),
        ((*PYTHON, "--engine-args", "x"), "--engine-args: must be a JSON object, given 'x'"),
        (
            (*PYTHON, "--engine-args", '{"max_num_seqs": 3}'),
            "max_num_seqs is set by --max-num-seqs",
        ),
        ((*PYTHON, "--engine-args", '{"dtype": "half"}'), "dtype is set by --precision"),
        (
            (*PYTHON, "--engine-args", '{"logprobs_mode": "raw_logits"}'),
            "logprobs_mode must not be set",
        ),
    ],
)
def test_options_that_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse(*arguments)


def test_options_that_are_not_set_are_left_to_vllm() -> None:
    assert engine_arguments(parse(*PYTHON), M) == {
        "model": "m",
        "tensor_parallel_size": 1,
        "enable_prefix_caching": True,
        "max_logprobs": 20,
        "dtype": "auto",
        "kv_cache_dtype": "auto",
    }


def test_options_become_arguments() -> None:
    options = parse(
        *(
            *PYTHON,
            "--tensor-parallel-size",
            "4",
            "--max-model-len",
            "100",
            "--kv-cache-gib",
            "0.5",
        ),
        *(
            "--precision",
            "f16",
            "--kv-cache-dtype",
            "bf16",
            "--max-num-batched-tokens",
            "64",
            "--no-prefix-caching",
        ),
        *(
            "--gpu-memory-utilization",
            "0.5",
            "--max-logprobs",
            "-1",
            "--engine-args",
            '{"enforce_eager": true}',
        ),
        OUZEL_MAX_NUM_SEQS="256",
    )
    assert engine_arguments(options, M) == {
        "model": "m",
        "tensor_parallel_size": 4,
        "enable_prefix_caching": False,
        "max_logprobs": -1,
        "dtype": "float16",
        "kv_cache_dtype": "bfloat16",
        "max_num_seqs": 256,
        "max_num_batched_tokens": 64,
        "max_model_len": 100,
        "kv_cache_memory_bytes": 2**29,
        "gpu_memory_utilization": 0.5,
        "enforce_eager": True,
    }


def test_models_of_one_server_may_have_engines_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "ouzel.yaml"
    file.write_text(
        "weights: int4\nmodels:\n- {name: small, model: a/b}\n"
        "- {name: large, model: c/d, engine_url: 'http://gpu:8000'}\n"
    )
    with pytest.raises(InvalidOption, match="--model 2: --weights: is not for --engine-url"):
        parse("--config", str(file))
    file.write_text(file.read_text().replace("weights: int4\n", ""))
    small, large = parse("--config", str(file)).all_models
    assert (small.vllm.is_chosen, large.vllm.engine_url) == (False, "http://gpu:8000")


def test_a_type_of_the_cache_that_only_vllm_has() -> None:
    options = parse(*PYTHON, "--engine-args", '{"kv_cache_dtype": "fp8"}')
    assert engine_arguments(options, M)["kv_cache_dtype"] == "fp8"


def test_the_child_gets_the_marks_of_the_reasoning_where_they_are_tokens() -> None:
    local = LocalModel(MODEL_DIRECTORY, "demo")
    plain, thinking = parse(*PYTHON), parse(*PYTHON, "--reasoning-parser", "qwen3")

    assert child_spec(plain, local).python == __file__
    assert child_spec(plain, local).options["arguments"] == engine_arguments(plain, local)
    assert child_spec(thinking, local).options["reasoning_marks"] == ("<think>", "</think>")


def test_models_that_only_openvino_can_serve(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "m.gguf"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InvalidOption, match="needs a model of safetensors"):
        check(tmp_path, *PYTHON)
    check(tmp_path, *URL)
    (tmp_path / "openvino_model.xml").touch()
    with pytest.raises(InvalidOption, match="cannot serve an OpenVINO IR"):
        check(tmp_path, *URL)
    check(tmp_path)


@pytest.mark.parametrize("name", ["minilm", "qwen3-classifier"])
def test_models_that_make_vectors(name: str) -> None:
    with pytest.raises(
        InvalidOption, match=f"needs a model that generates, .*{name} makes vectors or scores"
    ):
        check(GOLDEN.parent / "golden_sentences" / name, *URL)


def test_certificates_that_cannot_be_read() -> None:
    options = parse("--engine-url", "https://host", "--engine-ca-certs", "/nowhere/ca.pem")
    with pytest.raises(InvalidOption, match=r"/nowhere/ca\.pem"):
        link_to_server(options, LocalModel(MODEL_DIRECTORY, "demo"))


def test_a_key_is_in_no_message() -> None:
    with pytest.raises(InvalidOption) as refusal:
        parse("--engine-api-key", "se cret")
    assert "se cret" not in str(refusal.value)


def test_inspect_knows_openvino_only() -> None:
    with pytest.raises(InvalidOption, match="--engine: must be openvino for ouzel inspect"):
        inspect([*PYTHON])
