"""Quotes, links and names in CONTRIBUTING.md and SECURITY.md are correct."""

import re
import tomllib
from pathlib import Path

import pytest

from ouzel.options.options import known_flags

ROOT = Path(__file__).parent.parent
CONTRIBUTING, SECURITY = (ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md"))
QUOTES = re.findall(r"```python\n# (\S+)\n(.*?)```", CONTRIBUTING.read_text(), re.DOTALL)


@pytest.mark.parametrize(("path", "quote"), QUOTES)
def test_a_quoted_file_contains_the_quotation(path: str, quote: str) -> None:
    """`...` stands for omitted lines between two parts."""
    rest = (ROOT / path).read_text()
    for part in re.split(r"^ *\.\.\.\n", quote, flags=re.M):
        _, found, rest = rest.partition(part)
        assert found, f"{path} has no\n{part}"


@pytest.mark.parametrize("document", [CONTRIBUTING, SECURITY], ids=lambda path: path.name)
def test_links_and_paths_lead_somewhere(document: Path) -> None:
    text = document.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("http") or (ROOT / link).exists(), link
    for path in re.findall(r"`((?:src|tests|tools|training|docs|benchmarks)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_flags_are_options() -> None:
    flags = set(re.findall(r"`(--[a-z-]+)", SECURITY.read_text()))
    assert flags <= set(known_flags())


def test_recipes_are_in_the_justfile() -> None:
    recipes = set(re.findall(r"^([a-z][a-z-]*)[^:\n]*:", (ROOT / "justfile").read_text(), re.M))
    documents = [CONTRIBUTING, ROOT / ".github" / "pull_request_template.md"]
    named = {
        name
        for each in documents
        for line in re.findall(r"`just ([a-z -]+)`", each.read_text())
        for name in line.split()
    }
    rooms = {
        path.name for path in (ROOT / "tests").iterdir() if path.is_dir()
    }  # arguments of `just fast`
    assert named & recipes
    assert named <= recipes | rooms


def test_the_version_of_openvino_is_one_minor_version() -> None:
    """The section "Promises to users" of CONTRIBUTING.md requires this."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert [each for each in dependencies if re.fullmatch(r"openvino==\d+\.\d+\.\*", each)]
