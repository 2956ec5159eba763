"""What people type for OVMS, as options of ours."""

import re
from pathlib import Path

import pytest

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.options import Options
from ouzel.cli.ovms_flags import OF_FILES
from ouzel.cli.ovms_meanings import MEANINGS, REFUSED, WITHOUT_MEANING
from tests.cli.test_options import parse

DOCUMENT = Path(__file__).parents[2] / "docs" / "ovms.md"


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
        (("--source_model", "org/x", "--model_repository_path", "/nowhere"), "model", "model", "org/x"),
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
        (("--plugin_config", '{"KV_CACHE_PRECISION": "u8", "NUM_STREAMS": 1}'), "engine", "kv_cache_dtype", "u8"),
        (("--plugin_config", '{"prompt_lookup": false}'), "engine", "prompt_lookup", False),
        (("--tool_parser", "hermes3"), "model", "tool_parser", "hermes3"),
        (("--enable_tool_guided_generation", "true"), "model", "enable_tool_guided_generation", True),
        (("--task", "text_generation", "--pipeline_type", "LM_CB"), "model", "model", ""),
        (("--task", "embeddings"), "model", "task", "embed"),
        (("--task=rerank",), "model", "task", "score"),
    ],
)
def test_a_flag_of_theirs_is_an_option_of_ours(
    arguments: tuple[str, ...], record: str, option: str, value: object
) -> None:
    assert getattr(getattr(ovms(*arguments), record), option) == value


def test_our_own_flags_beat_theirs_and_keep_their_places() -> None:
    options = ovms("--max_num_seqs", "8", "--max-num-seqs", "4", "org/model", "--model_path", "/x")
    assert (options.engine.max_num_seqs, options.model.model) == (4, "org/model")


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
    assert options.remarks == ("--kv_cache_precision u4: the KV cache is u8 here, with twice the memory",)


def test_what_has_no_meaning_is_named() -> None:
    assert ovms("--rest_workers", "8", "--rest_port", "1", "--port", "2", "--metrics_enable").remarks == (
        "OpenVINO Model Server's --rest_workers has no meaning here",
        "OpenVINO Model Server's --port has no meaning here",
        "OpenVINO Model Server's --metrics_enable has no meaning here",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--config_path", "/nowhere/c.json"), "--config_path /nowhere/c.json: No such file or directory"),
        (("--add_to_config",), "--add_to_config: edit config.json: a running server reads it again, given 'true'"),
        (("--file_system_poll_wait_seconds", "-1"), "--file_system_poll_wait_seconds: must be a whole number, given"),
        (("--list_models",), "--list_models: needs --model_repository_path, a directory, given ''"),
        (("--plugin_config", "{"), "--plugin_config: must be a JSON object, given '{'"),
        (
            ("--plugin_config", '{"CACHE_DIRS": "x"}'),
            "--plugin_config: CACHE_DIRS is not known; did you mean CACHE_DIR",
        ),
        (("--task", "speech2text"), "--task: this server has text_generation, embeddings, rerank, given 'speech2text'"),
        (("--pull",), "--pull: ouzel pull MODEL downloads, and so does the start, given 'true'"),
        (("--pipeline_type", "OMNI"), "--pipeline_type: there is one pipeline, for text and pictures, given 'OMNI'"),
        (("--rest_port", "many"), "--port: .*given 'many'"),
        (("--weight-format", "nf4"), "--weights: .*given 'nf4'"),
    ],
)
def test_what_would_change_the_answers_is_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        ovms(*arguments)


def test_without_the_profile_the_message_names_it() -> None:
    with pytest.raises(InvalidOption, match=r"--rest_port is a flag of OpenVINO Model Server: .*--profile ovms"):
        parse("--rest_port", "8000")


def test_the_profile_may_come_from_the_environment() -> None:
    assert parse("--rest_port", "8123", environment={"OUZEL_PROFILE": "ovms"}).server.port == 8123


def test_the_document_names_every_flag() -> None:
    named = set(re.findall(r"`--([\w-]+)", DOCUMENT.read_text().split("## Command line")[1]))
    assert {*MEANINGS, *REFUSED, *WITHOUT_MEANING, *OF_FILES} <= named
