"""Reads the errors of wrong command lines, which must contain the correction."""

from pathlib import Path

import pytest

from ouzel.cli.app import main


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> "Told":
    return Told(capsys)


class Told:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def by(self, *arguments: str) -> str:
        """Returns the standard error of a command line that is refused."""
        try:
            status = main(arguments)
        except SystemExit as end:
            status = int(str(end.code))
        assert status == 2
        return self._capsys.readouterr().err.strip()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sevre", "ouzel: unknown command sevre; did you mean serve?"),
        ("frobnicate", "ouzel: unknown command frobnicate; ouzel --help lists all commands"),
        ("list --jsn", "ouzel: unknown option --jsn; did you mean --json?"),
        ("doctor --zeal", "ouzel: unknown option --zeal; ouzel doctor --help lists all options"),
        ("doctor here", "ouzel: unexpected argument here; ouzel doctor --help lists all options"),
        (
            "bench --url x --num-requests 8",
            "ouzel: unknown option --num-requests; did you mean --num-prompts?",
        ),
        (
            "bench --url x --kv-cache-gib 1",
            (
                "ouzel: --kv-cache-gib: is an option for a model in this process, "
                "and cannot be used with --url"
            ),
        ),
        (
            "serve --kv-cache-gib huge",
            "ouzel: --kv-cache-gib: must be a number > 0 and <= 1048576, given 'huge'",
        ),
        (
            "serve --port 99999",
            "ouzel: --port: must be a whole number from 0 to 65535, given '99999'",
        ),
        (
            "serve --max-num-seqs 1.5",
            "ouzel: --max-num-seqs: must be a whole number from 1 to 4096, given '1.5'",
        ),
    ],
)
def test_a_mistake_is_answered_with_the_way_out(told: Told, line: str, said: str) -> None:
    assert told.by(*line.split()) == said


def test_without_a_command_the_help_is_shown(told: Told) -> None:
    help_text = told.by()

    assert help_text.startswith("usage: ouzel")
    assert "serve" in help_text and "doctor" in help_text


def test_a_wrong_value_in_the_file_names_the_file(told: Told, tmp_path: Path) -> None:
    file = tmp_path / "ouzel.yaml"
    file.write_text("port: abc\n")

    assert told.by("serve", "--config", str(file)) == (
        f"ouzel: --config {file}: port: must be a whole number from 0 to 65535, given 'abc'"
    )


def test_a_wrong_value_in_a_variable_names_the_variable(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUZEL_PORT", "abc")

    assert (
        told.by("serve") == "ouzel: OUZEL_PORT: must be a whole number from 0 to 65535, given 'abc'"
    )


def test_a_flag_counts_before_the_file(told: Told, tmp_path: Path) -> None:
    file = tmp_path / "ouzel.yaml"
    file.write_text("port: 8000\n")

    assert told.by("serve", "--config", str(file), "--port", "z").startswith(
        "ouzel: --port: must be"
    )
