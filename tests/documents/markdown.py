"""Reads the repository's documents: files, headings, links, fenced blocks."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCED = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2 *$", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def list_documents() -> list[Path]:
    """Returns every Markdown file that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).exists()]


def find_links(path: Path) -> list[str]:
    """Returns the targets of all links, outside fenced blocks."""
    return _LINK.findall(_FENCED.sub("", path.read_text()))


def find_anchors(path: Path) -> set[str]:
    """Returns the anchors of all headings, built as GitHub and mkdocs build them."""
    text = _FENCED.sub("", path.read_text())
    headings = re.findall(r"^#{1,6} (.+?)(?: \{.*\})?$", text, re.M)
    return {_slugify(heading) for heading in headings}


def _slugify(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
