"""docs/reference/ovms.md describes each parameter of OVMS's documents."""

import re
from pathlib import Path

DOCUMENTS = Path(__file__).parents[3] / "docs"


def read_parameters() -> set[str]:
    """Returns the parameters of OVMS's pages (A, B and C) in docs/reference/conformance.md."""
    chat = (DOCUMENTS / "reference" / "conformance.md").read_text().split("## /invocations")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([ABCD ]+) \|", chat, re.M)
    return {name for name, pages in rows if set(pages) & set("ABC")}


def test_the_document_names_every_parameter() -> None:
    fields = (
        (DOCUMENTS / "reference" / "ovms.md")
        .read_text()
        .split("## Request fields")[1]
        .split("\n## ")[0]
    )
    named = set(re.findall(r"`([\w.]+)`", fields))
    assert len(read_parameters()) > 40
    assert {name.removeprefix("stream_options.") for name in read_parameters()} <= named
