"""The README has the two commands of a clone, and renders as the package's page on the index."""

import re

from tests.documents.markdown import ROOT, find_links, read_blocks

README = ROOT / "README.md"
MAX_LINES = 140


def test_the_two_commands_are_in_the_readme() -> None:
    commands = [
        line
        for block in read_blocks(README)
        if block.language == "sh"
        for line in block.text.splitlines()
    ]

    assert "pip install uv && uv run --no-dev ouzel serve" in commands
    assert "uv run pytest" in commands


def test_links_are_absolute() -> None:
    """The index shows the README without the repository's files."""
    assert [link for link in find_links(README) if not link.startswith("https://")] == []


def test_links_into_the_repository_have_one_base() -> None:
    site = re.search(r"^ +repository: (\S+)", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert site is not None
    base = site[1]
    raw = base.replace("github.com", "raw.githubusercontent.com").replace("/blob/", "/")

    for link in find_links(README):
        found = re.match(rf"(?:{re.escape(base)}|{re.escape(raw)})/([^#]+)", link)
        assert found is not None, link
        assert (ROOT / found[1]).exists(), link


def test_the_readme_can_be_read_in_two_minutes() -> None:
    assert len(README.read_text().splitlines()) <= MAX_LINES
