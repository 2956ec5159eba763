"""`tools/house/language.py`: the counts of the tool, and the allowed numbers of all rooms."""

from pathlib import Path

import pytest

from tools.house.language import (
    Numbers,
    count,
    differences,
    find,
    measured_files,
    read_allowed,
    rises,
    write_allowed,
)
from tools.house.pronouns import find_hanging


def test_the_numbers_of_all_rooms_are_the_allowed_ones() -> None:
    paths = list(measured_files())
    assert differences(count(paths, find(paths)), read_allowed()) == []


@pytest.mark.parametrize(
    "text",
    [
        "What the options leave open is read off.",
        "Whoever asks for it may go away.",
        "Returns what was read.",
        "Counts the bytes of what a client has sent.",
        "Returns that of a page.",
        "Adds those of the vision tower.",
        "Leaves out those that are needed.",
        "Keeps the counts; those are the server's own.",
        "A request waits, and one that goes on has a client.",
        "Takes the one that is free.",
        "By which names is a model known?",
        "Says for whom the answer is.",
        "The loader is who knows.",
        "It checks as the other does.",
        "Returns all that can be asked for.",
        "Returns\nwhat follows.",
    ],
)
def test_a_clause_in_the_place_of_a_noun_is_found(text: str) -> None:
    assert find_hanging(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Returns the file that holds keys.",
        "Copies the text, which may be empty.",
        "The interpreter in which the engine runs.",
        "Clients who stop reading are disconnected.",
        "Returns whether those tokens fit.",
        'Reads `what` and "those of" as names.',
        "Says that no one that day asked.",
        "One of them waits, so that the others go on.",
        "Chooses the replica whose queue is shortest.",
    ],
)
def test_a_relative_clause_after_its_noun_is_not_found(text: str) -> None:
    assert find_hanging(text) is None


def test_each_measure_finds_its_places(tmp_path: Path) -> None:
    file = Path("src/ouzel/room/file.py")
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(
        '"""The room of a file."""\n\n'
        "# What follows is\n# one comment.\n"
        "def size_of() -> int:\n"
        '    """Raises Wrong."""\n'
        '    raise Wrong("max_tokens: that of the model is smaller")  # of the limit\n'
        "\n\n"
        "def read() -> int:\n"
        '    """Returns those that are read."""\n'
        f"    return {' + '.join(['1'] * 30)}\n"
    )
    findings = [(finding.measure, finding.line) for finding in find([file], tmp_path)]
    assert findings == [
        ("empty_docstrings", 6),
        ("fragments", 1),
        ("functions_named_of", 5),
        ("hanging_comments", 3),
        ("hanging_docstrings", 11),
        ("hanging_messages", 7),
        ("long_lines", 12),
        ("pointing_docstrings", 11),
        ("preposition_comments", 7),
    ]


def test_code_of_documents_is_not_their_text(tmp_path: Path) -> None:
    text = (
        "# Serve\n\nTakes what\nis there.\n\n```\nwhat\n```\n\n| a | those of b |\n| what | c |\n"
    )
    (tmp_path / "README.md").write_text(text)
    findings = find([Path("README.md")], tmp_path)
    assert [(found.room, found.measure, found.line) for found in findings] == [
        (".", "hanging_documents", line) for line in (3, 10, 11)
    ]


NOW: Numbers = {"a": {"fragments": 2, "long_lines": 1}, "b": {}}


def test_every_different_number_is_reported_with_its_remedy() -> None:
    higher, lower = differences(NOW, {"a": {"fragments": 1, "long_lines": 2}, "b": {}})
    assert "a: fragments is 2" in higher
    assert "tools.house.language a --list" in higher
    assert "a: long_lines is 1" in lower
    assert "--write" in lower


def test_a_number_may_not_rise_in_a_known_room() -> None:
    assert rises(NOW, {"a": {"fragments": 1, "long_lines": 1}, "c": {"fragments": 4}}) == [
        "a: fragments would rise from 1 to 2"
    ]


def test_a_new_room_takes_numbers_of_others_but_no_new_ones() -> None:
    assert rises(NOW, {"moved": {"fragments": 2, "long_lines": 1}}) == []
    assert rises(NOW, {"moved": {"fragments": 2}}) == [
        "all rooms: long_lines would rise from 0 to 1"
    ]


def test_allowed_numbers_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_allowed(NOW, tmp_path / "numbers.toml")
    assert read_allowed(tmp_path / "numbers.toml") == NOW
