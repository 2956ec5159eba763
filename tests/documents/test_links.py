"""Every link between documents leads to a file, and to a heading of it."""

import re
from pathlib import Path

import pytest

from tests.documents.markdown import ROOT, find_anchors, find_links, list_documents

DOCUMENTS = list_documents()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path: Path) -> None:
    for link in find_links(path):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in find_anchors(target), link


def test_the_index_names_every_document() -> None:
    docs = ROOT / "docs"
    index = {(docs / link.partition("#")[0]).resolve() for link in find_links(docs / "README.md")}
    pages = [
        page
        for part in ("", "start", "how-to", "reference", "explanation")
        for page in (docs / part).glob("*.md")
    ]
    assert [page for page in pages if page not in index and page.name != "README.md"] == []
