"""benchmarks/RESULTS.md: the picture matches the figures; commands and links lead to files."""

import re
from xml.etree import ElementTree

import pytest

from benchmarks.picture import GROUPS, PANELS, PICTURE, RESULTS, draw, read_table

ROOT = RESULTS.parents[1]
PAGE = RESULTS.read_text()


def test_the_picture_is_drawn_from_the_page() -> None:
    assert draw(PAGE) == PICTURE.read_text(), "run `uv run python -m benchmarks.picture`"


def test_the_page_begins_with_its_only_picture() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)

    assert pictures == [f"plots/{PICTURE.name}"]
    assert PAGE.index(pictures[0]) < PAGE.index("\n## ")


def test_each_rate_is_beside_a_bar_of_its_length() -> None:
    root = ElementTree.fromstring(draw(PAGE))
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    bars = [
        float(each.attrib["width"])
        for each in root.iter("{http://www.w3.org/2000/svg}rect")
        if each.attrib.get("height") == "14" and each.attrib["width"] != "14"
    ]
    rates = [
        read_table(PAGE, panel.heading)[row][column]
        for panel in PANELS
        for row in GROUPS.values()
        for column in panel.columns
    ]

    assert [f"{rate:,g}" for rate in rates] == [
        text for text in texts if text and re.fullmatch(r"[\d,.]+", text)
    ]
    for group in range(0, len(rates), 3):
        longest, fastest = max(bars[group : group + 3]), max(rates[group : group + 3])
        for bar, rate in zip(bars[group : group + 3], rates[group : group + 3], strict=True):
            assert bar / longest == pytest.approx(rate / fastest, abs=0.001)


def test_a_table_is_read_by_its_first_numbers() -> None:
    page = (
        "\n### Toy\n\n| | ours, tokens/s | theirs, tokens/s |\n|---|---:|---:|\n"
        "| batch 1 | 1,234.5 | 9.5 (**1.10**, 1.00 to 1.20) |\n| copy | 8.0, 4.0 a step | – |\n\n"
        "- a note\n"
    )

    assert read_table(page, "Toy") == {
        "batch 1": {"ours": 1234.5, "theirs": 9.5},
        "copy": {"ours": 8.0},
    }
    with pytest.raises(ValueError, match="must have the heading `### Missing`"):
        read_table(page, "Missing")


def test_the_commands_of_the_page_name_files() -> None:
    modules = set(re.findall(r"\b(benchmarks(?:\.[a-z_]+)+)\b(?!/)", PAGE))
    scripts = set(re.findall(r"`[^`\n]*\b(benchmarks/[a-z_]+\.py)", PAGE))
    files = {module.replace(".", "/") for module in modules} | scripts

    assert len(files) > 10
    for file in files:
        path = ROOT / file
        assert path.is_file() or path.with_suffix(".py").is_file() or path.is_dir(), file


def test_links_to_the_page_name_its_headings() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    documents = [ROOT / "README.md", RESULTS, *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        pattern = r"\]\(#([^)]+)\)" if document == RESULTS else r"RESULTS\.md#([^)\s]+)\)"
        for anchor in re.findall(pattern, document.read_text()):
            assert anchor in anchors, f"{document.relative_to(ROOT)}: {anchor}"
