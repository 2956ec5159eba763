"""`ouzel serve -h` and `--help` describe the options, and unknown options are explained."""

import re
from pathlib import Path

import pytest

from ouzel.cli.app import main
from ouzel.options.records import RECORDS, Option, list_options

OPTIONS = [option for record in RECORDS for option in list_options(record)]
COLUMNS, ROWS = 100, 50  # the size of the terminal


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments])
    assert ended.value.code == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Returns the one-line error of a command line that is refused with status 2."""
    try:
        status: object = main(["serve", *arguments])
    except SystemExit as ended:
        status = ended.code
    captured = capsys.readouterr()
    assert (status, captured.out, captured.err.count("\n")) == (2, "", 1)
    return captured.err


def entry(text: str, option: Option) -> str:
    """Returns the help text of the option, joined to one line."""
    flag = f"--[no-]{option.flag[2:]}" if option.is_flag else option.flag
    [found] = re.findall(rf"^  ({re.escape(flag)}(?: .*)?(?:\n    .*)*)$", text, re.M)
    return " ".join(found.split())


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def test_every_option_is_there_once_with_its_description_and_its_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(capsys, "--help")

    for option in OPTIONS:
        if option.name != "model":
            assert option.description in entry(text, option)
            assert option.default_text
            assert entry(text, option).endswith(f"default: {option.default_text})")
    assert "default: the bundled demo model" in " ".join(text.split())


def test_the_whole_help_takes_few_screens(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--help").splitlines()

    assert len(lines) <= 9 * ROWS
    assert max(map(len, lines)) <= COLUMNS


def test_the_most_needed_options_come_first_and_are_all_of_the_short_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, short = shown(capsys, "--help"), shown(capsys, "-h")

    assert len(short.splitlines()) <= ROWS
    beginning, _, _ = short.partition("\nAll options")
    assert whole.startswith(beginning)
    for flag in (
        "--host",
        "--port",
        "--api-key",
        "--max-model-len",
        "--served-model-name",
        "--config",
    ):
        assert f"\n  {flag} " in short
    assert "--help" in short.splitlines()[-1]


def test_headings_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--help").splitlines()

    headings = [
        line for before, line in zip(["", *lines], lines, strict=False) if line and not before
    ]
    headings = [line for line in headings if not line.startswith((" ", "usage:"))]
    assert [line for line in headings if len(line) < 50] == [
        "Common options",
        "Model",
        "Several models",
        "Engine",
        "vLLM as the engine",
        "Limits of requests",
        "Pictures, videos, PDFs and sounds in requests",
        "Sound files",
        "Address",
        "TLS",
        "Prompt templates",
        "Compatibility",
        "Browsers (CORS)",
        "Storage of responses, conversations and chats",
        "Tools that the server runs",
        "Observability",
    ]


def test_the_help_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    lines = shown(capsys, "--help").splitlines()

    assert max(len(line) for line in lines if "://" not in line) <= 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--max-num-seq", "3"), "unknown option --max-num-seq; did you mean --max-num-seqs?"),
        (("--max-num-seq=3",), "unknown option --max-num-seq; did you mean --max-num-seqs?"),
        (
            ("org/model", "--no-prefix-cache"),
            "unknown option --no-prefix-cache; did you mean --no-prefix-caching?",
        ),
        (("--modle-len", "5"), "unknown option --modle-len; did you mean --max-model-len?"),
        (("--confg", "c.yaml"), "unknown option --confg; did you mean --config?"),
        (
            ("--pipeline-parallel", "2"),
            "unknown option --pipeline-parallel; ouzel serve --help lists all options",
        ),
        (("-x",), "unknown option -x; ouzel serve --help lists all options"),
        (("one", "two"), "unexpected argument 'two'; the model is 'one'"),
        (("--port",), "--port: expected one argument"),
        (
            ("--weights", "int2"),
            "--weights: a width must be one of auto, int8, int4, bf16, f32, given 'int2'",
        ),
        (
            ("--lora-parts", "lora"),
            "--lora-parts: each must be one of bias, dora, embedding, head, norm, given ['lora']",
        ),
        (("--port", "70000"), "--port: must be a whole number from 0 to 65535, given '70000'"),
        (("--rest_port", "8000"), "--rest_port is a flag of OpenVINO Model Server"),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert refused(capsys, *arguments).startswith(f"ouzel: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("max-num-seqs: 3\n", "there is no option max-num-seqs; did you mean max_num_seqs?"),
        ("prot: 1\nhots: x\n", "there is no option hots, prot; did you mean host, port?"),
        ("pipeline_parallel: 2\n", "there is no option pipeline_parallel\n"),
        ("port: [1\n", "while parsing a flow sequence in "),
    ],
)
def test_a_bad_file_of_options_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, message: str
) -> None:
    config = tmp_path / "ouzel.yaml"
    config.write_text(content)

    assert refused(capsys, "--config", str(config)).startswith(
        f"ouzel: --config {config}: {message}"
    )
