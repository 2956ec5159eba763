"""Settings of LMI's containers are translated into Ouzel's options."""

import json
import re
from pathlib import Path

import pytest

from ouzel.config import MediaConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.options.profiles.lmi import MEANINGS, Setting
from ouzel.options.records import RECORDS, list_options
from tests.options.test_options import parse

ROOT = Path(__file__).parents[2]
NOWHERE = {"SERVING_MODEL_STORE": "/nowhere"}


def lmi(*arguments: str, **environment: str) -> Options:
    return parse("--profile", "lmi", *arguments, environment=NOWHERE | environment)


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """Returns a model directory with a serving.properties file."""
    (tmp_path / "config.json").write_text("{}")
    path = tmp_path / "serving.properties"
    path.write_text(
        "# comment\n! another\nengine=Python\noption.model_id = org/model\n"
        "option.max_rolling_batch_size: 8\n"
        "option.max_model_len=\\\n  512\njob_queue_size=7\noption.tgi_compat=True\n"
        "option.rolling_batch=\n"
    )
    return path


def test_the_container_listens_where_sagemaker_asks() -> None:
    assert (lmi().server.host, lmi().server.port) == ("0.0.0.0", 8080)
    assert lmi(SAGEMAKER_BIND_TO_PORT="8123").server.port == 8123
    address = lmi(SERVING_INFERENCE_ADDRESS="http://127.0.0.1:9000").server
    assert (address.host, address.port) == ("127.0.0.1", 9000)


@pytest.mark.parametrize(
    ("environment", "record", "option", "value"),
    [
        ({"HF_MODEL_ID": "org/model"}, "model", "model", "org/model"),
        ({"OPTION_MODEL_ID": "org/model"}, "model", "model", "org/model"),
        ({"OPTION_SERVED_MODEL_NAME": "a, b"}, "model", "served_model_name", ("a", "b")),
        ({"OPTION_MAX_MODEL_LEN": "99"}, "model", "max_model_len", 99),
        ({"OPTION_DTYPE": "fp32"}, "engine", "precision", "f32"),
        ({"OPTION_DTYPE": "fp16"}, "engine", "precision", "auto"),
        ({"OPTION_MAX_ROLLING_BATCH_SIZE": "9"}, "engine", "max_num_seqs", 9),
        ({"MAX_BATCH_SIZE": "9"}, "engine", "max_num_seqs", 9),
        (
            {"MAX_BATCH_SIZE": "9", "OPTION_MAX_ROLLING_BATCH_SIZE": "8"},
            "engine",
            "max_num_seqs",
            8,
        ),
        (
            {"OPTION_MAX_ROLLING_BATCH_PREFILL_TOKENS": "999"},
            "engine",
            "max_num_batched_tokens",
            999,
        ),
        ({"OPTION_ENABLE_PREFIX_CACHING": "False"}, "engine", "prefix_caching", False),
        ({"SERVING_JOB_QUEUE_SIZE": "5"}, "limits", "max_queued_requests", 5),
        ({"MAX_CONCURRENT_REQUESTS": "5"}, "limits", "max_queued_requests", 5),
        ({"SERVING_MAX_REQUEST_SIZE": "5000"}, "limits", "max_body_bytes", 5000),
        ({"SAGEMAKER_MAX_PAYLOAD_IN_MB": "6"}, "limits", "max_body_bytes", 6 * 2**20),
        (
            {"SAGEMAKER_MAX_REQUEST_SIZE": "6000", "SERVING_MAX_REQUEST_SIZE": "7"},
            "limits",
            "max_body_bytes",
            6000,
        ),
        ({"OPTION_TGI_COMPAT": "true"}, "server", "lmi_tgi_compat", True),
        ({"SERVING_CORS_ALLOWED_ORIGIN": "*"}, "server", "allowed_origins", ("*",)),
        ({"HF_TASK": "text-generation"}, "model", "task", "generate"),
        ({"HF_TASK": "text-embedding"}, "model", "task", "embed"),
        ({"HF_TASK": "feature-extraction"}, "model", "task", "embed"),
        ({"OPTION_TASK": "text-classification"}, "model", "task", "score"),
        ({"OPTION_TASK": "auto"}, "model", "task", "auto"),
        ({"OPTION_RERANKING": "true"}, "model", "task", "score"),
        ({"OPTION_POOLING": "cls_token"}, "model", "pooling", "cls"),
        ({"OPTION_POOLING": "mean"}, "model", "pooling", "mean"),
        ({"OPTION_NORMALIZE": "False"}, "model", "normalize", False),
        (
            {"OPTION_ENTRYPOINT": "djl_python.lmi_vllm.vllm_async_service"},
            "server",
            "lmi_vector_lists",
            True,
        ),
        ({"OPTION_SIGMOID": "true"}, "model", "task", "auto"),
        (
            {"OPTION_ALLOWED_MEDIA_DOMAINS": "a.org, b.org"},
            "media",
            "allowed_media_domains",
            ("a.org", "b.org"),
        ),
        (
            {"OPTION_ALLOWED_MEDIA_DOMAINS": '["a.org", "all"]'},
            "media",
            "allowed_media_domains",
            ("a.org", "all"),
        ),
        (
            {"OPTION_SPECULATIVE_CONFIG": '{"method": "eagle3", "model": "org/head"}'},
            "model",
            "draft_model",
            "org/head",
        ),
        (
            {"OPTION_SPECULATIVE_CONFIG": '{"model": "small"}'},
            "model",
            "draft_model",
            "small",
        ),
        ({"OPTION_SPECULATIVE_CONFIG": '{"method": "qwen3_next_mtp"}'}, "model", "mtp", True),
        ({"OPTION_SPECULATIVE_CONFIG": '{"method": "ngram"}'}, "engine", "prompt_lookup", True),
        ({"OPTION_SPECULATIVE_DRAFT_MODEL": "small"}, "model", "draft_model", "small"),
        ({"OPTION_ALLOWED_LOCAL_MEDIA_PATH": "/srv"}, "media", "allowed_local_media_path", "/srv"),
    ],
)
def test_a_setting_is_an_option_of_ours(
    environment: dict[str, str], record: str, option: str, value: object
) -> None:
    options = lmi(**environment)

    assert getattr(getattr(options, record), option) == value
    assert options.remarks == ()


def test_the_properties_beat_the_environment_and_our_options_beat_both(properties: Path) -> None:
    environment = {
        "SERVING_MODEL_STORE": str(properties.parent),
        "OPTION_MAX_ROLLING_BATCH_SIZE": "9",
    }

    options = lmi(**environment)

    assert (options.model.model, options.model.max_model_len) == ("org/model", 512)
    assert options.engine.max_num_seqs == 8
    assert options.limits.max_queued_requests == 7
    assert options.server.lmi_tgi_compat
    assert options.remarks == (f"LMI's engine ({properties}) has no meaning here",)
    assert lmi("--max-num-seqs", "3", **environment).engine.max_num_seqs == 3
    assert lmi(OUZEL_MAX_NUM_SEQS="3", **environment).engine.max_num_seqs == 3
    assert lmi("other/model", **environment).model.model == "other/model"


def test_the_model_directory_is_the_model_unless_another_is_named(properties: Path) -> None:
    directory = str(properties.parent)
    properties.unlink()

    assert lmi(SERVING_MODEL_STORE=directory).model.model == directory
    assert lmi(SERVING_MODEL_STORE=directory, HF_MODEL_ID="org/model").model.model == "org/model"
    assert lmi().model.model == ""


def test_the_properties_of_a_directory_that_is_named_count(properties: Path) -> None:
    assert lmi(str(properties.parent)).engine.max_num_seqs == 8
    assert lmi(str(properties.parent)).model.model == str(properties.parent)


def test_a_handler_of_the_users_own_has_no_meaning() -> None:
    options = lmi(OPTION_ENTRYPOINT="model.py", OPTION_RERANKING="false")

    assert not options.server.lmi_vector_lists
    assert [remark.split(" (")[0] for remark in options.remarks] == [
        "LMI's entrypoint",
        "LMI's reranking",
    ]


def test_the_directories_of_adapters_are_served_by_their_names(properties: Path) -> None:
    directory = properties.parent
    for name in ("poet", "clerk"):
        (directory / "adapters" / name).mkdir(parents=True)
    (directory / "adapters" / "README.md").write_text("no adapter")
    properties.write_text("option.enable_lora=true\noption.max_loras=1\noption.max_lora_rank=32\n")

    options = lmi(str(directory))

    assert options.model.lora == (
        f"clerk={directory}/adapters/clerk",
        f"poet={directory}/adapters/poet",
    )
    assert (options.model.max_loras, options.model.max_lora_rank) == (2, 32)
    assert options.remarks == ()
    properties.write_text("option.max_loras=1\n")
    assert lmi(str(directory)).model.lora == ()
    assert len(lmi(str(directory)).remarks) == 1


def test_adapters_may_come_later() -> None:
    assert lmi(OPTION_ENABLE_LORA="true").model.max_loras == 4
    assert lmi(OPTION_ENABLE_LORA="true", OPTION_MAX_LORAS="7").model.max_loras == 7
    with pytest.raises(
        InvalidOption, match=r"LMI's max_loras .*: must be a whole number, given 'x'"
    ):
        lmi(OPTION_ENABLE_LORA="true", OPTION_MAX_LORAS="x")


@pytest.mark.parametrize("how", ["flag", "environment", "file", "properties"])
def test_an_option_allows_urls_of_pictures(tmp_path: Path, how: str) -> None:
    (tmp_path / "ouzel.yaml").write_text("allowed_media_domains: [all]\n")
    arguments = {
        "flag": ("--allowed-media-domains", "all"),
        "file": ("--config", str(tmp_path / "ouzel.yaml")),
    }
    environment = {
        "environment": {"OUZEL_ALLOWED_MEDIA_DOMAINS": "all"},
        "properties": {"SERVING_MODEL_STORE": str(tmp_path)},
    }
    if how == "properties":
        (tmp_path / "serving.properties").write_text("option.allowed_media_domains=all\n")

    options = lmi(*arguments.get(how, ()), **environment.get(how, {}))

    assert options.media.allowed_media_domains == ("all",)
    assert lmi().media.allowed_media_domains == ()


def test_a_setting_without_meaning_is_named_without_its_value() -> None:
    options = lmi(
        OPTION_TENSOR_PARALLEL_DEGREE="2", SERVING_KEYSTORE_PASS="secret", SM_NUM_GPUS="4"
    )

    assert options.remarks == (
        (
            "LMI's tensor_parallel_degree (environment OPTION_TENSOR_PARALLEL_DEGREE) has "
            "no meaning here"
        ),
        "LMI's keystore_pass (environment SERVING_KEYSTORE_PASS) has no meaning here",
    )


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"HF_REVISION": "abc"},
            r"LMI's revision \(environment HF_REVISION\): only 'main' is supported, given 'abc'",
        ),
        (
            {"HF_TASK": "fill-mask"},
            (
                r"LMI's task \(environment HF_TASK\): must be one of auto, text-generation, "
                r".*'fill-mask'"
            ),
        ),
        (
            {"OPTION_POOLING": "max_tokens"},
            r"LMI's pooling .*: must be one of mean, .*, lasttoken, given 'max_tokens'",
        ),
        ({"OPTION_SIGMOID": "false"}, r"LMI's sigmoid .*: only 'true' is supported, given 'false'"),
        ({"OPTION_BEDROCK_COMPAT": "true"}, r"LMI's bedrock_compat .*: only 'false' is supported"),
        ({"OPTION_DTYPE": "int3"}, r"LMI's dtype .*: must be one of .*, given 'int3'"),
        (
            {"SERVING_INFERENCE_ADDRESS": "unix:/x"},
            r"LMI's inference_address .*: must be like http://",
        ),
        (
            {"SERVING_INFERENCE_ADDRESS": "http://h:x"},
            r"LMI's inference_address .*: must be like http://",
        ),
        (
            {"SAGEMAKER_MAX_PAYLOAD_IN_MB": "x"},
            r"LMI's max_payload_in_mb .*: must be a whole number, given 'x'",
        ),
        (
            {"OPTION_ALLOWED_MEDIA_DOMAINS": "[1]"},
            r"LMI's allowed_media_domains .*: must be a list of hosts, given",
        ),
        (
            {"OPTION_LIMIT_MM_PER_PROMPT": "image"},
            r"LMI's limit_mm_per_prompt .*: must be like image=2, given 'image'",
        ),
        (
            {"OPTION_LIMIT_MM_PER_PROMPT": "{"},
            r"LMI's limit_mm_per_prompt .*: must be like image=2, given '{'",
        ),
        (
            {"OPTION_SPECULATIVE_CONFIG": "eagle3"},
            r"LMI's speculative_config .*: must be like .*, given 'eagle3'",
        ),
        (
            {"OPTION_SPECULATIVE_CONFIG": '{"method": "eagle3"}'},
            r"LMI's speculative_config .*: model must be given for the method eagle3",
        ),
        ({"OPTION_MAX_ROLLING_BATCH_SIZE": "many"}, r"--max-num-seqs: .*given 'many'"),
    ],
)
def test_impossible_settings_are_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        lmi(**environment)


def test_properties_that_are_no_text_are_named(properties: Path) -> None:
    properties.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidOption, match=r"serving\.properties"):
        lmi(str(properties.parent))


def test_without_the_profile_nothing_of_it_is_read(properties: Path) -> None:
    environment = {
        "HF_MODEL_ID": "org/model",
        "OPTION_DTYPE": "int3",
        "SERVING_MODEL_STORE": str(properties.parent),
    }

    options = parse(environment=environment)

    assert (options.model.model, options.server.host, options.server.port) == (
        "",
        "127.0.0.1",
        8000,
    )
    assert options.remarks == ()


@pytest.mark.parametrize("value", ["image=2", "video=1, image=2", '{"image": 2}'])
def test_how_many_images_may_be_in_a_prompt(value: str) -> None:
    assert lmi(OPTION_LIMIT_MM_PER_PROMPT=value).media.max_images == 2


def test_how_many_videos_may_be_in_a_prompt_says_nothing_of_images() -> None:
    assert lmi(OPTION_LIMIT_MM_PER_PROMPT="video=1").media == MediaConfig(max_videos=1)


def test_a_method_of_speculation_without_meaning_is_named() -> None:
    options = lmi(OPTION_SPECULATIVE_CONFIG='{"method": "medusa", "model": "x"}')

    assert options.model.draft_model == ""
    [remark] = options.remarks
    assert remark.startswith("LMI's speculative_config (environment OPTION_SPECULATIVE_CONFIG)")


def test_keys_beside_a_known_method_of_speculation_are_named() -> None:
    config = {"method": "eagle3", "model": "x", "num_speculative_tokens": 5}
    options = lmi(OPTION_SPECULATIVE_CONFIG=json.dumps(config))

    assert options.model.draft_model == "x"
    [remark] = options.remarks
    assert remark.startswith("LMI's speculative_config (environment OPTION_SPECULATIVE_CONFIG)")
    assert remark.endswith(": num_speculative_tokens has no meaning here")


def test_every_meaning_is_an_option() -> None:
    ours = {option.name for record in RECORDS for option in list_options(record)}
    given = {"dtype": "auto", "inference_address": "http://h:1", "max_payload_in_mb": "1"}
    given |= {
        "limit_mm_per_prompt": "image=1",
        "task": "auto",
        "reranking": "true",
        "pooling": "cls",
    }
    given |= {"entrypoint": "vllm_async_service", "speculative_config": '{"method": "ngram"}'}

    for key, meaning in MEANINGS.items():
        assert meaning(Setting(key, given.get(key, "1"), "a test")).keys() <= ours


def test_the_document_names_every_setting() -> None:
    settings = (ROOT / "docs" / "reference" / "lmi.md").read_text().split("## Settings")[1]

    named = {name.lower() for name in re.findall(r"`(\w+)`", settings)}

    assert MEANINGS.keys() - named == {"max_payload_in_mb", "port"}, (
        "these two have no name in serving.properties"
    )
