from pathlib import Path

import pytest

from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.options.records import RECORDS, list_options


def parse(*arguments: str, environment: dict[str, str] | None = None) -> Options:
    return read_command_line([*arguments], environment or {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metrics-host", "::1"), "--metrics-host: needs --metrics-port"),
        (
            ("--prefix-cache-dir", "/p", "--no-prefix-caching"),
            "--prefix-cache-dir: needs --prefix-caching, given '/p'",
        ),
        (
            ("--metrics-port", "8000"),
            "--metrics-port: must differ from --port, given 8000 for both",
        ),
        (
            ("model", "--demo", "text"),
            "--demo: cannot be used with MODEL, given the model 'model'",
        ),
        (("--demo", "audio"), "--demo"),
    ],
)
def test_options_that_cannot_go_together(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse(*arguments)


def test_options_have_defaults() -> None:
    options = parse()

    assert (options.model.model, options.model.weights, options.server.port) == ("", "auto", 8000)


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_text("port: 1\nmax_num_seqs: 2\nhost: filehost\nserved_model_name: [a, b]\n")
    environment = {"OUZEL_PORT": "3", "OUZEL_MAX_NUM_SEQS": "4"}

    options = parse("--config", str(config), "--port", "5", environment=environment)

    assert (options.server.port, options.engine.max_num_seqs, options.server.host) == (
        5,
        4,
        "filehost",
    )
    assert options.model.served_model_name == ("a", "b")


def test_booleans_lists_and_numbers_from_everywhere() -> None:
    options = parse(
        *(
            "--no-prefix-caching",
            "--served-model-name",
            "x",
            "--served-model-name",
            "y",
            "some/model",
        ),
        environment={"OUZEL_ENGINE_PROCESS": "false", "OUZEL_KV_CACHE_GIB": "0.5"},
    )

    assert not options.engine.prefix_caching
    assert not options.engine.engine_process
    assert options.engine.kv_cache_gib == 0.5
    assert options.model.served_model_name == ("x", "y")
    assert options.model.model == "some/model"


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("--port", "70000"), {}, r"--port: .*to 65535, given '70000'"),
        (("--max-num-seqs", "many"), {}, r"--max-num-seqs: must be a whole number.*given 'many'"),
        ((), {"OUZEL_KV_CACHE_GIB": "-1"}, r"OUZEL_KV_CACHE_GIB: .*> 0.*given '-1'"),
        ((), {"OUZEL_WEIGHTS": "int2"}, r"OUZEL_WEIGHTS: .*given 'int2'"),
        (("--drain-timeout-s", "inf"), {}, r"--drain-timeout-s: .*given 'inf'"),
        (("--allow-credentials",), {}, "--allow-credentials: needs --allowed-origins"),
        (("--allowed-methods", "GET"), {}, "--allowed-methods: needs --allowed-origins"),
        (
            ("--allowed-origins", "https://a.org/"),
            {},
            r"--allowed-origins: .*given \['https://a.org/'\]",
        ),
        (
            (),
            {"OUZEL_ALLOWED_ORIGINS": "a.org"},
            r"OUZEL_ALLOWED_ORIGINS: each must match .*, given \['a.org'\]",
        ),
        (
            ("--max-num-seqs", "1000"),
            {},
            r"--max-num-batched-tokens: must be >= --max-num-seqs, 1000, given 512",
        ),
        (
            ("--deterministic", "--device", "GPU"),
            {},
            "--deterministic: needs --device CPU, given GPU",
        ),
        (
            ("--deterministic", "--max-num-seqs", "511"),
            {},
            (
                r"--deterministic: needs --max-num-batched-tokens >= "
                r"--max-num-seqs \+ 2, 513, given 512"
            ),
        ),
        (
            ("--deterministic", "--lora", "a=/a"),
            {},
            "--deterministic: cannot be used with --lora, given a=/a",
        ),
        (
            ("--deterministic", "--max-loras", "3"),
            {},
            "--deterministic: cannot be used with --max-loras, given 3",
        ),
    ],
)
def test_bad_values_are_named(
    arguments: tuple[str, ...], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse(*arguments, environment=environment)


def test_the_file_may_be_named_by_the_environment_and_empty_variables_are_absent(
    tmp_path: Path,
) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_text("port: 1234\n")
    environment = {"OUZEL_CONFIG": str(config), "OUZEL_PORT": "", "OUZEL_SERVED_MODEL_NAME": "a, b"}

    options = parse(environment=environment)

    assert options.server.port == 1234
    assert options.model.served_model_name == ("a", "b")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidOption, match=r"ouzel\.yaml"):
        parse("--config", str(config))


def test_unknown_keys_in_the_file_are_named(tmp_path: Path) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_text("prot: 8000\n")

    with pytest.raises(InvalidOption, match="there is no option prot"):
        parse("--config", str(config))


def test_a_variable_that_is_almost_an_options_is_named_in_the_log() -> None:
    options = parse(
        environment={"OUZEL_MAX_NUM_SEQ": "3", "OUZEL_TESTS_NEED_POSTGRES": "1", "OUZEL_PORT": "1"}
    )

    assert options.remarks == ("OUZEL_MAX_NUM_SEQ is not read; did you mean OUZEL_MAX_NUM_SEQS?",)


def test_every_option_has_a_description_and_appears_once() -> None:
    options = [option for record in RECORDS for option in list_options(record)]

    assert all(option.description.endswith(".") for option in options)
    assert len({option.name for option in options}) == len(options)


def test_flags_may_not_be_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--max-num-s", "3")
    assert "--max-num-s" in capsys.readouterr().err


def test_api_keys_come_from_flags_the_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# ours\nk3\n\n  # theirs\n  k4  \n")

    assert parse("--api-key", "k1", "--api-key", "k2").server.api_key == ("k1", "k2")
    assert parse("--api-key", "k1", "--api-key-file", str(file)).server.api_key == (
        "k1",
        "k3",
        "k4",
    )
    assert parse(environment={"OUZEL_API_KEY": "k1,k2"}).server.api_key == ("k1", "k2")
    assert parse().server.api_key == ()


def test_the_plain_variable_is_read_where_no_other_key_is_given(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("k3")
    environment = {"API_KEY": "plain,one"}

    assert parse(environment=environment).server.api_key == ("plain,one",)
    assert parse("--api-key", "k1", environment=environment).server.api_key == ("k1",)
    assert parse("--api-key-file", str(file), environment=environment).server.api_key == ("k3",)
    assert parse(environment={"API_KEY": ""}).server.api_key == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no key"),
        (b"# only this\n\n", "holds no key"),
        (b"good\nsecret two\n", "line 2: a key must be printable ASCII without spaces"),
        (b"secret\xff", "is not text"),
    ],
)
def test_a_bad_key_file_is_named_and_its_keys_are_not(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)

    with pytest.raises(InvalidOption, match=message) as refused:
        parse("--api-key-file", str(file))

    assert str(file) in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_missing_key_file_is_named() -> None:
    with pytest.raises(InvalidOption, match="--api-key-file /nowhere/keys: No such file"):
        parse("--api-key-file", "/nowhere/keys")


@pytest.mark.parametrize(
    "content", ["api_key: secret key", "api_key: [secret key]", "api_key: [secret", "a: b: secret"]
)
def test_no_message_about_the_config_file_shows_a_key(tmp_path: Path, content: str) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_text(content)

    with pytest.raises(InvalidOption) as refused:
        parse("--config", str(config))

    assert "secret" not in str(refused.value)


def test_a_bad_key_among_the_options_is_not_shown() -> None:
    with pytest.raises(InvalidOption, match=r"--api-key: .*not shown") as refused:
        parse("--api-key", "secret key")
    assert "secret" not in str(refused.value)

    with pytest.raises(InvalidOption, match="API_KEY: a key must be printable") as refused:
        parse(environment={"API_KEY": "secret key"})
    assert "secret" not in str(refused.value)
