"""docs/how-to/scaling.md and the chart's README name what there is."""

import re
from pathlib import Path

import pytest

from ouzel.options.options import known_flags
from tools.deploy.containerfile import ROOT

DOCUMENTS = [
    ROOT / "docs" / "how-to" / "scaling.md",
    ROOT / "deploy" / "helm" / "ouzel" / "README.md",
]


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_flags_are_options() -> None:
    text = DOCUMENTS[0].read_text()
    commands = "\n".join(re.findall(r"^    ouzel serve.*$", text, re.M))
    flags = set(re.findall(r"`(--[a-z-]+)", text)) | set(re.findall(r" (--[a-z-]+)", commands))
    assert "--max-num-seqs" in flags
    assert flags - {"--build-arg", "--replicas"} <= set(known_flags())
