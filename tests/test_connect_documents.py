"""docs/how-to/clients.md and docs/connect/: examples parse, commands work, the index has all."""

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
RUN = "js"  # tests/clients/test_document_examples.py runs these, and no test here parses them


def test_the_index_links_every_page() -> None:
    linked = re.findall(r"^\| \[.+?\]\(\.\./connect/(.+?)\)", INDEX.read_text(), re.M)

    assert sorted(linked) == [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_the_tested_version_and_a_test(page: Path) -> None:
    text = page.read_text()

    assert re.search(r"^Tried with .*\d+\.\d+", text, re.M)
    assert re.search(r"^Test it:", text, re.M)
    assert "\n## Limits\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_to_paste_can_be_parsed(page: Path) -> None:
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
