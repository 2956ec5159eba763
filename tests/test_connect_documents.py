"""docs/how-to/clients.md and docs/connect/: examples parse, commands are valid, the index is complete."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ouzel.options.command_line import read_command_line

CONNECT = Path(__file__).parent.parent / "docs" / "connect"
INDEX = CONNECT.parent / "how-to" / "clients.md"
PAGES = sorted(CONNECT.glob("*.md"))
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "python": ast.parse,
    "sh": shlex.split,
}
RUN = "js"  # by tests/clients/test_document_examples.py, and read by nobody else


def test_the_index_links_every_page() -> None:
    linked = re.findall(r"^\| \[.+?\]\(\.\./connect/(.+?)\)", INDEX.read_text(), re.M)

    assert sorted(linked) == [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_which_version_was_tried_and_how_to_test_it(page: Path) -> None:
    text = page.read_text()

    assert re.search(r"^Tried with .*\d+\.\d+", text, re.M)
    assert re.search(r"^Test it:", text, re.M)
    assert "\n## Limits\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_to_be_pasted_can_be_read(page: Path) -> None:
    blocks = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", page.read_text(), re.M | re.S)

    assert blocks
    for _, language, content in blocks:
        if language == RUN:
            continue
        READERS[language](
            "\n".join(line.strip() if language == "json" else line for line in content.splitlines())
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_server_takes_the_command(page: Path) -> None:
    [command] = re.findall(r"^ouzel serve (.*)$", page.read_text(), re.M)

    assert read_command_line(shlex.split(command), {}).model.served_model_name == ("ouzel",)
