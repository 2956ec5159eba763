"""Command lines of OVMS are translated into Ouzel's options."""

import re
from pathlib import Path

import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import read_model_entry
from ouzel.options.options import Options
from ouzel.options.profiles.ovms_flags import READ_HERE
from ouzel.options.profiles.ovms_meanings import MEANINGS, REFUSED, WITHOUT_MEANING
from tests.options.test_options import parse

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "ovms.md"


def ovms(*arguments: str) -> Options:
    return parse("--profile", "ovms", *arguments)


@pytest.mark.parametrize(
    ("arguments", "record", "option", "value"),
    [
        (("--rest_port", "8123"), "server", "port", 8123),
        (("--rest_port=8123",), "server", "port", 8123),
        (("--rest_port", "8123", "--port", "9000"), "server", "port", 8123),
        (("--port", "9000"), "server", "port", 9000),
        (("--rest_bind_address", "0.0.0.0"), "server", "host", "0.0.0.0"),
        (("--model_path", "/models/x"), "model", "model", "/models/x"),
        (("--source_model", "org/x"), "model", "model", "org/x"),
        (
            ("--source_model", "org/x", "--model_repository_path", "/nowhere"),
            "model",
            "model",
            "org/x",
        ),
        (("--model_name", "llama3"), "model", "served_model_name", ("llama3",)),
        (("--target_device", "GPU"), "engine", "device", "GPU"),
        (("--weight-format", "int4"), "model", "weights", "int4"),
        (("--weight-format", "fp16"), "model", "weights", "bf16"),
        (("--log_level", "TRACE"), "observability", "log_level", "debug"),
        (("--log_level", "INFO"), "observability", "log_level", "info"),
        (
            ("--allowed_origins", "http://a.org,http://b.org"),
            "server",
            "allowed_origins",
            ("http://a.org", "http://b.org"),
        ),
        (("--allowed_headers", "x-a, x-b"), "server", "allowed_headers", ("x-a", "x-b")),
        (
            ("--allowed_media_domains", "a.org, b.org"),
            "media",
            "allowed_media_domains",
            ("a.org", "b.org"),
        ),
        (("--allowed_media_domains", "all"), "media", "allowed_media_domains", ("all",)),
        (("--allowed_local_media_path", "/"), "media", "allowed_local_media_path", "/"),
        (("--draft_source_model", "x"), "model", "draft_model", "x"),
        (("--allow_credentials",), "server", "allow_credentials", True),
        (("--allow_credentials=false",), "server", "allow_credentials", False),
        (("--max_num_seqs", "8"), "engine", "max_num_seqs", 8),
        (("--max_num_batched_tokens", "256"), "engine", "max_num_batched_tokens", 256),
        (("--cache_size", "2"), "engine", "kv_cache_gib", 2.0),
        (("--cache_size", "0"), "engine", "kv_cache_gib", None),
        (("--kv_cache_precision", "u8"), "engine", "kv_cache_dtype", "u8"),
        (("--enable_prefix_caching", "false"), "engine", "prefix_caching", False),
        (("--enable_prefix_caching",), "engine", "prefix_caching", True),
        (
            ("--plugin_config", '{"KV_CACHE_PRECISION": "u8", "NUM_STREAMS": 1}'),
            "engine",
            "kv_cache_dtype",
            "u8",
        ),
        (("--plugin_config", '{"prompt_lookup": false}'), "engine", "prompt_lookup", False),
        (("--tool_parser", "hermes3"), "model", "tool_parser", "hermes3"),
        (
            ("--enable_tool_guided_generation", "true"),
            "model",
            "enable_tool_guided_generation",
            True,
        ),
        (("--task", "text_generation", "--pipeline_type", "LM_CB"), "model", "model", ""),
        (("--task", "embeddings"), "model", "task", "embed"),
        (("--task=rerank",), "model", "task", "score"),
        (("--pooling", "CLS"), "model", "pooling", "cls"),
        (("--pooling", "LAST"), "model", "pooling", "lasttoken"),
        (("--pooling", "mean"), "model", "pooling", "mean"),
        (("--normalize", "false"), "model", "normalize", False),
        (("--normalize",), "model", "normalize", True),
        (("--normalize", "--no-normalize"), "model", "normalize", False),
        (("--truncate", "true"), "model", "truncate", True),
        (("--truncate", "false"), "model", "truncate", False),
        (("--truncate",), "model", "truncate", True),
        (("--truncate", "true", "--no-truncate"), "model", "truncate", False),
        (("--max_allowed_chunks", "20"), "model", "max_document_chunks", 20),
        (("--max_length", "256"), "model", "max_model_len", 256),
        (("--draft_source_model", "x", "--draft_eagle3_mode"), "model", "draft_model", "x"),
        (("--verbose_response",), "server", "verbose_response", True),
    ],
)
def test_a_flag_of_theirs_is_an_option_of_ours(
    arguments: tuple[str, ...], record: str, option: str, value: object
) -> None:
    assert getattr(getattr(ovms(*arguments), record), option) == value


@pytest.mark.parametrize(
    ("flags", "is_left_out"),
    [
        (("--draft_eagle3_mode",), True),
        (("--draft_eagle3_mode", "1"), True),
        (("--draft_eagle3_mode", "false"), False),
        ((), False),
    ],
)
def test_an_eagle_draft_as_openvino_ir_is_left_out_after_its_download(
    flags: tuple[str, ...], is_left_out: bool
) -> None:
    options = ovms("org/model", "--draft_source_model", "owner/draft", *flags)
    assert options.model.draft_model == "owner/draft"
    later = read_model_entry("later=org/later", options.values, "")
    for settings in (options.all_models[0], options.first, later):
        assert settings.leaves_out_ir_draft == is_left_out


def test_our_own_flags_beat_theirs_and_keep_their_places() -> None:
    options = ovms("--max_num_seqs", "8", "--max-num-seqs", "4", "org/model", "--model_path", "/x")
    assert (options.engine.max_num_seqs, options.model.model) == (4, "org/model")


def test_a_gguf_file_is_named_by_itself(tmp_path: Path) -> None:
    file = ("--source_model", "org/x", "--gguf_filename", "x-Q4_K_M.gguf")
    model = ovms(*file).model
    assert (model.model, model.served_model_name) == ("org/x:x-Q4_K_M.gguf", ("org/x",))
    assert ovms("--model_path", str(tmp_path), *file[2:]).model.model == str(
        tmp_path / "x-Q4_K_M.gguf"
    )
    (tmp_path / "org" / "x").mkdir(parents=True)
    model = ovms(*file, "--model_repository_path", str(tmp_path), "--model_name", "mine").model
    assert (model.model, model.served_model_name) == (
        str(tmp_path / "org" / "x" / "x-Q4_K_M.gguf"),
        ("mine",),
    )


def test_adapters_of_the_hub_lie_in_the_repository(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    loras = (
        "poet=owner/poet@adapter_model.safetensors:1.0, "
        f"own={adapter},file={adapter}/adapter_model.safetensors"
    )
    model = ovms(
        "--source_model", "org/x", "--model_repository_path", str(tmp_path), "--source_loras", loras
    ).model
    poet = tmp_path / "org" / "x" / "loras" / "owner" / "poet"
    assert model.lora == (f"poet={poet}", f"own={adapter}", f"file={adapter}")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("owner/poet", "each entry must be alias=source, given 'owner/poet'"),
        ("poet=", "each entry must be alias=source"),
        ("poet=owner", "a repository must be owner/name"),
        ("poet=owner/poet:0.7", "the weight must be 1"),
        (
            "poet=owner/poet@other.safetensors",
            "the file of an adapter must be PEFT's adapter_model.safetensors",
        ),
        (
            "poet=https://x.org/adapter_model.safetensors",
            "must be a repository of the hub or a local adapter",
        ),
        ("poet=@a:0.7+@b:0.5", "a blend of adapters is not supported"),
        ("poet=/nowhere/x.safetensors", "must be a PEFT directory"),
    ],
)
def test_other_adapters_are_refused(entry: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=f"--source_loras: {message}"):
        ovms("--source_model", "org/x", "--model_repository_path", "/x", "--source_loras", entry)


def test_an_adapter_of_the_hub_needs_a_repository() -> None:
    with pytest.raises(
        InvalidOption, match="--source_loras: an adapter of the hub needs --model_repository_path"
    ):
        ovms("--source_model", "org/x", "--source_loras", "poet=owner/poet")


def test_a_switch_leaves_the_argument_behind_it_alone() -> None:
    assert ovms("--allow_credentials", "org/x").model.model == "org/x"
    assert ovms("--allow_credentials", "false", "org/x").server.allow_credentials is False


def test_a_model_that_was_pulled_is_served_under_its_name(tmp_path: Path) -> None:
    directory = tmp_path / "org" / "x"
    directory.mkdir(parents=True)
    pulled = ("--source_model", "org/x", "--model_repository_path", str(tmp_path))
    model = ovms(*pulled).model
    assert (model.model, model.served_model_name) == (str(directory), ("org/x",))
    assert ovms(*pulled, "--model_name", "mine").model.served_model_name == ("mine",)


def test_pages_of_all_origins_may_ask_unless_told_otherwise(tmp_path: Path) -> None:
    assert ovms().server.allowed_origins == ("*",)
    assert ovms("--allowed-origins", "http://a.org").server.allowed_origins == ("http://a.org",)
    assert parse().server.allowed_origins == ()
    config = tmp_path / "ouzel.yaml"
    config.write_text("profile: ovms\nallowed_origins: []\n")
    assert parse("--config", str(config)).server.allowed_origins == ()


def test_a_cache_of_four_bits_becomes_one_of_eight() -> None:
    options = ovms("--kv_cache_precision", "u4")
    assert options.engine.kv_cache_dtype == "u8"
    assert options.remarks == (
        "--kv_cache_precision u4: the KV cache is u8 here, with twice the memory",
    )


def test_a_flag_without_meaning_is_named() -> None:
    assert ovms(
        "--rest_workers", "8", "--rest_port", "1", "--port", "2", "--metrics_enable"
    ).remarks == (
        "OpenVINO Model Server's --rest_workers has no meaning here",
        "OpenVINO Model Server's --port has no meaning here",
        "OpenVINO Model Server's --metrics_enable has no meaning here",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--config_path", "/nowhere/c.json"),
            "--config_path /nowhere/c.json: No such file or directory",
        ),
        (
            ("--file_system_poll_wait_seconds", "-1"),
            "--file_system_poll_wait_seconds: must be a whole number, given",
        ),
        (("--list_models",), "--list_models: needs --model_repository_path, a directory, given ''"),
        (("--plugin_config", "{"), "--plugin_config: must be a JSON object, given '{'"),
        (
            ("--plugin_config", '{"CACHE_DIRS": "x"}'),
            "--plugin_config: unknown property CACHE_DIRS; did you mean CACHE_DIR",
        ),
        (
            ("--task", "image_generation"),
            "--task: must be one of text_generation, embeddings, rerank, speech2text, "
            "text2speech, given 'image_generation'",
        ),
        (("--pooling", "MAX"), "--pooling: must be one of .*given 'MAX'"),
        (
            ("--resolution", "512x512"),
            "--resolution: this server generates no images; leave it out, given '512x512'",
        ),
        (
            ("--extra_quantization_params", "--sym --ratio 0.8"),
            "--extra_quantization_params: .*weights are compressed",
        ),
        (
            ("--pipeline_type", "OMNI"),
            "--pipeline_type: there is one pipeline, for text and images, given 'OMNI'",
        ),
        (("--rest_port", "many"), "--port: .*given 'many'"),
        (("--weight-format", "nf4"), "--weights: .*given 'nf4'"),
    ],
)
def test_a_flag_that_would_change_the_answers_is_refused(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        ovms(*arguments)


def test_without_the_profile_the_message_names_the_profile() -> None:
    with pytest.raises(
        InvalidOption, match=r"--rest_port is a flag of OpenVINO Model Server: .*--profile ovms"
    ):
        parse("--rest_port", "8000")
    with pytest.raises(
        InvalidOption, match=r"--pull is a flag of OpenVINO Model Server: .*--profile ovms"
    ):
        parse("--pull")


def test_flags_that_are_spelt_alike_are_our_own_without_the_profile() -> None:
    model = parse("--pooling", "cls", "--normalize", "true", "--truncate", "org/x").model
    assert (model.pooling, model.normalize, model.truncate, model.model) == (
        "cls",
        True,
        True,
        "org/x",
    )


def test_verbose_answers_are_of_the_profile() -> None:
    with pytest.raises(
        InvalidOption, match="--verbose-response: needs --profile ovms, given --profile openai"
    ):
        parse("--verbose-response")


def test_the_profile_may_come_from_the_environment() -> None:
    assert parse("--rest_port", "8123", environment={"OUZEL_PROFILE": "ovms"}).server.port == 8123


def test_the_document_names_every_flag() -> None:
    named = set(re.findall(r"`--([\w-]+)", DOCUMENT.read_text().split("## Command line")[1]))
    assert {*MEANINGS, *REFUSED, *WITHOUT_MEANING, *READ_HERE} <= named


@pytest.mark.parametrize(
    "command",
    [
        "--source_model OpenVINO/Phi-3-mini-FastDraft-50M-int8-ov --model_repository_path models/ "
        "--model_name Phi-3-mini-FastDraft-50M-int8-ov --target_device GPU --task text_generation "
        "--port 9000 --rest_port 8000",
        "--rest_port 8000 --source_model OpenVINO/Qwen3-8B-int4-ov --model_repository_path models "
        "--tool_parser hermes3 --target_device GPU --task text_generation "
        "--enable_prefix_caching true "
        "--cache_dir .ov_cache --max_prompt_len 2000",
        "--rest_port 8000 --source_model OpenVINO/Qwen3.6-35B-A3B-int4-ov "
        "--model_repository_path models "
        "--allowed_media_domains raw.githubusercontent.com",
        "--rest_port 8000 --source_model OpenVINO/bge-base-en-v1.5-fp16-ov "
        "--model_repository_path models "
        "--task embeddings --pooling CLS --num_streams 2 --normalize true --truncate true "
        "--max_length 512",
        "--rest_port 8000 --source_model OpenVINO/bge-reranker-base-fp16-ov "
        "--model_repository_path models "
        "--task rerank --max_allowed_chunks 10000",
        "--pull --model_repository_path models --source_model OpenVINO/Qwen3-8B-int4-ov "
        "--task text_generation "
        "--target_device GPU",
        "--pull --source_model unsloth/Llama-3.2-1B-Instruct-GGUF --model_repository_path /models "
        "--model_name unsloth/Llama-3.2-1B-Instruct-GGUF --task text_generation "
        "--gguf_filename Llama-3.2-1B-Instruct-Q4_K_M.gguf",
        "--add_to_config --config_path models/config.json --model_name OpenVINO/Qwen3-8B-int4-ov "
        "--model_path OpenVINO/Qwen3-8B-int4-ov",
        (
            "--add_to_config c:/models --model_name OpenVINO/Qwen3-8B-int4-ov "
            "--model_path OpenVINO/Qwen3-8B-int4-ov"
        ),
        (
            "--add_to_config --config_path /models/config.json --model_name vlm "
            "--model_path /models/x --group_name vlm"
        ),
        "--add_to_config --config_path config.json --model_name resnet "
        "--model_path models/resnet/resnet.xml "
        "--batch_size 1 --target_device CPU",
        "--remove_from_config --config_path config.json --model_name model1",
    ],
)
def test_command_lines_of_the_documents_are_read(command: str) -> None:
    options = ovms(*command.split())
    assert options.directive is not None
    assert options.directive.is_all == (not command.startswith(("--source_model", "--rest_port")))
