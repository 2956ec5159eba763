"""docs/reference/ovms.md says how each parameter of OVMS's documents is taken."""

import re
from pathlib import Path

DOCUMENTS = Path(__file__).parents[3] / "docs"


def parameters() -> set[str]:
    """Those that docs/reference/conformance.md has from OVMS's pages (A, B and C)."""
    chat = (DOCUMENTS / "reference" / "conformance.md").read_text().split("## /invocations")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([ABCD ]+) \|", chat, re.M)
    return {name for name, pages in rows if set(pages) & set("ABC")}


def test_it_names_every_parameter() -> None:
    fields = (
        (DOCUMENTS / "reference" / "ovms.md")
        .read_text()
        .split("## Request fields")[1]
        .split("\n## ")[0]
    )
    named = set(re.findall(r"`([\w.]+)`", fields))
    assert len(parameters()) > 40
    assert {name.removeprefix("stream_options.") for name in parameters()} <= named
