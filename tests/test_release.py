"""`tools/house/release.py`: when tag, version and changelog agree."""

import pytest

from tools.house.release import disagreements

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-22\n\n### Added\n\n- All.\n"


def test_a_release_that_agrees() -> None:
    assert disagreements("v1.2.0", "1.2.0", CHANGELOG) == []
    assert disagreements("v1.2.0", "1.2.0", CHANGELOG.replace("## Unreleased\n\n", "")) == []


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "about"),
    [
        ("1.2.0", "1.2.0", CHANGELOG, "tag"),
        ("v1.3.0", "1.2.0", CHANGELOG, "tag"),
        ("v1.3.0", "1.3.0", CHANGELOG, "heading `## 1.3.0"),
        ("v1.2.0", "1.2.0", CHANGELOG.replace(" - 2026-11-22", ""), "heading `## 1.2.0"),
        ("v1.2.0", "1.2.0", CHANGELOG.replace("Unreleased\n", "Unreleased\n\n- More.\n"), "under `## Unreleased`"),
        ("v1.2", "1.2", CHANGELOG.replace("1.2.0", "1.2"), "the version must be"),
    ],
)
def test_what_disagrees_is_told(tag: str, version: str, changelog: str, about: str) -> None:
    [found] = disagreements(tag, version, changelog)
    assert about in found
