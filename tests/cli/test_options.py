from pathlib import Path

import pytest

from ouzel.cli.app import build_parser
from ouzel.cli.options import RECORDS, InvalidOption, Options, options_of, read_options


def parse(*arguments: str, environment: dict[str, str] | None = None) -> Options:
    parsed = vars(build_parser().parse_args(["serve", *arguments]))
    del parsed["command"]
    return read_options(parsed, environment or {})


def test_defaults() -> None:
    options = parse()

    assert (options.model.model, options.model.weights, options.server.port) == ("", "int8", 8000)


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_text("port: 1\nmax_num_seqs: 2\nhost: filehost\nserved_model_name: [a, b]\n")
    environment = {"OUZEL_PORT": "3", "OUZEL_MAX_NUM_SEQS": "4"}

    options = parse("--config", str(config), "--port", "5", environment=environment)

    assert (options.server.port, options.engine.max_num_seqs, options.server.host) == (5, 4, "filehost")
    assert options.model.served_model_name == ("a", "b")


def test_booleans_lists_and_numbers_from_everywhere() -> None:
    options = parse(
        *("--no-prefix-caching", "--served-model-name", "x", "--served-model-name", "y", "some/model"),
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
        (("--port", "70000"), {}, r"--port: .*<= 65535.*given '70000'"),
        (("--max-num-seqs", "many"), {}, r"--max-num-seqs: .*int.*given 'many'"),
        ((), {"OUZEL_KV_CACHE_GIB": "-1"}, r"--kv-cache-gib: .*> 0.*given '-1'"),
        ((), {"OUZEL_WEIGHTS": "int2"}, r"--weights: .*given 'int2'"),
        (("--drain-timeout-s", "inf"), {}, r"--drain-timeout-s: .*given 'inf'"),
        (("--max-num-seqs", "1000"), {}, r"--max-num-batched-tokens: must be >= --max-num-seqs, 1000, given 512"),
    ],
)
def test_bad_values_are_named(arguments: tuple[str, ...], environment: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse(*arguments, environment=environment)


def test_the_file_may_be_named_by_the_environment_and_empty_variables_are_absent(tmp_path: Path) -> None:
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


def test_every_option_has_a_description_and_appears_once() -> None:
    options = [option for record in RECORDS for option in options_of(record)]

    assert all(option.description.endswith(".") for option in options)
    assert len({option.name for option in options}) == len(options)


def test_flags_may_not_be_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--max-num-s", "3")
    assert "--max-num-s" in capsys.readouterr().err
