"""README.md is also the package's page on the index, so its links are whole addresses."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
SOURCE = URLS["Source"]
FILES = f"{SOURCE}/blob/main/"
PICTURES = f"{SOURCE.replace('://github.com/', '://raw.githubusercontent.com/')}/main/"

PLACES = [
    *re.findall(r"(?:href|src)=\"([^\"]+)\"", README),
    *re.findall(r"\]\(([^)\s]+)\)", README),
    *re.findall(r"^\[[^\]]+\]: (\S+)", README, re.M),
]


@pytest.mark.parametrize("place", sorted({place for place in PLACES if place[0] != "#"}))
def test_each_link_and_picture_has_a_whole_address(place: str) -> None:
    assert re.match(r"https?://", place), place
    if not place.startswith((SOURCE, PICTURES)):
        return
    for beginning in (FILES, PICTURES):
        if place.startswith(beginning):
            path = place.removeprefix(beginning).partition("#")[0]
            assert (ROOT / path).exists(), place
            return
    assert place.removeprefix(SOURCE).rstrip("/") in ("", "/issues", "/releases"), place


def test_pictures_are_files_and_not_pages() -> None:
    """A page of GitHub that shows a picture is no picture file."""
    for place in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", README):
        assert not place.startswith(FILES), place


def test_the_addresses_of_the_project_lead_to_files_of_it() -> None:
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= URLS.keys()
    assert (ROOT / URLS["Changelog"].removeprefix(FILES)).is_file()
