"""`tools/house/release.py` compares tag, version, changelog and index."""

import re
from functools import partial
from pathlib import Path

import pytest

from ouzel import __version__
from tools.house.release import CHANGELOG as CHANGELOG_FILE
from tools.house.release import disagreements, exit_with, name_disagreements, read_published

ROOT = Path(__file__).parent.parent
MAX_HIGHLIGHTS_WORDS = 520  # about two minutes of reading

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-22\n\n### Added\n\n- All.\n"


def test_a_consistent_release_has_no_disagreement() -> None:
    assert disagreements("v1.2.0", "1.2.0", CHANGELOG) == []
    assert disagreements("v1.2.0", "1.2.0", CHANGELOG.replace("## Unreleased\n\n", "")) == []


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "about"),
    [
        ("1.2.0", "1.2.0", CHANGELOG, "tag"),
        ("v1.3.0", "1.2.0", CHANGELOG, "tag"),
        ("v1.3.0", "1.3.0", CHANGELOG, "heading `## 1.3.0"),
        ("v1.2.0", "1.2.0", CHANGELOG.replace(" - 2026-11-22", ""), "heading `## 1.2.0"),
        (
            "v1.2.0",
            "1.2.0",
            CHANGELOG.replace("Unreleased\n", "Unreleased\n\n- More.\n"),
            "under `## Unreleased`",
        ),
        ("v1.2", "1.2", CHANGELOG.replace("1.2.0", "1.2"), "the version must be"),
    ],
)
def test_a_disagreement_is_reported(tag: str, version: str, changelog: str, about: str) -> None:
    [found] = disagreements(tag, version, changelog)
    assert about in found


UNKNOWN = "ERROR: No matching distribution found for ouzel"
LISTED = "ouzel (1.1.0)\nAvailable versions: 1.1.0, 1.0.0rc1\n"
read = partial(read_published, name="ouzel")
find_disagreements = partial(name_disagreements, name="ouzel")


def test_an_unused_name_is_free() -> None:
    assert find_disagreements(read("", UNKNOWN), "1.2.0", CHANGELOG) == []


def test_a_name_of_another_project_is_reported() -> None:
    [found] = find_disagreements(read(LISTED, ""), "1.2.0", CHANGELOG)

    assert found.startswith(
        "the name ouzel is taken on the index: CHANGELOG.md has no heading for 1.0.0rc1, 1.1.0."
    )


def test_earlier_versions_of_this_project_do_not_block_the_name() -> None:
    changelog = (
        CHANGELOG + "\n## 1.1.0 - 2026-10-01\n\n- More.\n\n## 1.0.0rc1 - 2026-09-01\n\n- Less.\n"
    )

    assert find_disagreements(read(LISTED, ""), "1.2.0", changelog) == []
    [found] = find_disagreements(read(LISTED, ""), "1.1.0", changelog)
    assert "1.1.0 is on the index already" in found


def test_the_check_of_a_good_release_ends_with_status_0() -> None:
    exit_with([])  # no SystemExit

    with pytest.raises(SystemExit, match="first\nsecond"):
        exit_with(["first", "second"])


def test_an_index_that_does_not_answer_ends_the_check() -> None:
    with pytest.raises(ValueError, match="could not be asked for ouzel: no route"):
        read("", "no route\n")


def test_the_changelog_has_this_version_and_can_be_read_in_two_minutes() -> None:
    text = CHANGELOG_FILE.read_text()
    sections = dict(re.findall(r"^## (\S+).*\n((?:(?!## ).*\n?)*)", text, re.M))

    assert list(sections)[:2] == ["Unreleased", __version__]
    highlights, found, notes = sections[__version__].partition("### Upgrade notes")
    assert found and "store" in notes
    assert len(highlights.split()) <= MAX_HIGHLIGHTS_WORDS


def test_documents_name_this_version() -> None:
    named = {}
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*")]:
        if path.is_file() and "decisions" not in path.parts:
            pattern = r"(?:[Oo]uzel[ :-]v?)(\d+\.\d+\.\d+)\b"
            for version in re.findall(pattern, path.read_text(errors="replace")):
                named[str(path.relative_to(ROOT))] = version
    assert set(named.values()) == {__version__}, named
