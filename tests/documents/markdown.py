"""Reads the repository's documents: files, headings, links, fenced blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_WRITTEN = {"dist", "node_modules", "site"}
_FENCED = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n"
    r"(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.M | re.S,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MARK = re.compile(r"^ *<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: str  # path of the document from the root
    line: int
    language: str
    text: str
    # reason in the comment `<!-- not run: … -->` on the line before; empty without a comment
    reason: str
    shown: str  # the answer below the block in the document: a JSON block, or a quotation

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def list_documents() -> list[Path]:
    """Returns every Markdown file of the repository, except files that a build or a tool writes."""
    found = []
    for path in sorted(ROOT.rglob("*.md")):
        names = set(path.relative_to(ROOT).parts[:-1]) - {".github"}
        if not names & _WRITTEN and not any(name.startswith(".") for name in names):
            found.append(path)
    return found


def read_blocks(path: Path) -> list[Block]:
    text = path.read_text()
    blocks = []
    for match in _FENCED.finditer(text):
        before = text[: match.start()].splitlines()
        mark = _MARK.match(before[-1]) if before else None
        lines = match["text"].splitlines(keepends=True)
        blocks.append(
            Block(
                document=path.relative_to(ROOT).as_posix(),
                line=len(before) + 1,
                language=match["language"],
                text="".join(line.removeprefix(match["indent"]) for line in lines),
                reason="" if mark is None else mark[1],
                shown=_read_shown(text[match.end() :]),
            )
        )
    return blocks


def _read_shown(text: str) -> str:
    """Returns the JSON block or the quotation at the start of the text."""
    if json := re.match(r"\n\n```json\n(.*?)```", text, re.S):
        return json[1]
    quotation = re.match(r"\n\n((?:> .*\n)+)", text)
    return "" if quotation is None else re.sub(r"^> ", "", quotation[1], flags=re.M).strip()


def read_prose(path: Path) -> str:
    """Returns the text without its fenced blocks."""
    return _FENCED.sub("", path.read_text())


def find_links(path: Path) -> list[str]:
    return _LINK.findall(read_prose(path))


def find_anchors(path: Path) -> set[str]:
    """Returns the anchors of all headings, built as GitHub and mkdocs build them."""
    headings = re.findall(r"^#{1,6} (.+?)(?: \{.*\})?$", read_prose(path), re.M)
    return {_slugify(heading) for heading in headings}


def _slugify(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
