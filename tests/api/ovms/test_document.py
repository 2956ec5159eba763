"""docs/ovms.md says how each parameter of OVMS's documents is taken."""

import re
from pathlib import Path

DOCUMENTS = Path(__file__).parents[3] / "docs"


def parameters() -> set[str]:
    """Those that docs/conformance.md has from OVMS's pages (A, B and C)."""
    chat = (DOCUMENTS / "conformance.md").read_text().split("## /invocations")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([ABCD ]+) \|", chat, re.M)
    return {name for name, pages in rows if set(pages) & set("ABC")}


def test_it_names_every_parameter() -> None:
    fields = (DOCUMENTS / "ovms.md").read_text().split("## Request fields")[1].split("\n## ")[0]
    named = set(re.findall(r"`([\w.]+)`", fields))
    assert len(parameters()) > 40
    assert {name.removeprefix("stream_options.") for name in parameters()} <= named


def test_links_lead_somewhere() -> None:
    for document in ("ovms.md", "README.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", (DOCUMENTS / document).read_text()):
            assert (DOCUMENTS / link).exists(), link


def test_the_index_names_every_document() -> None:
    index = (DOCUMENTS / "README.md").read_text()
    assert all(
        f"({path.name})" in index for path in DOCUMENTS.glob("*.md") if path.name != "README.md"
    )
