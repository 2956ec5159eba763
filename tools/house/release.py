"""Checks that a tag, the version and the changelog agree, and exits with 1 where they do not.

uv run python -m tools.house.release v1.2.3
"""

import re
import sys
from pathlib import Path

from ouzel import __version__

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def disagreements(tag: str, version: str, changelog: str) -> list[str]:
    """Returns a sentence for each thing that is not as a release has it."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        found.append(f"the version must be X.Y.Z or X.Y.ZrcN, given {version}")
    if tag != f"v{version}":
        found.append(f"the tag must be v{version}, the version in src/ouzel/__init__.py, given {tag}")
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        found.append(f"CHANGELOG.md must have a heading `## {version} - YYYY-MM-DD`")
    if re.search(r"^## Unreleased$(?!\s*(^## |\Z))", changelog, re.M):
        found.append("CHANGELOG.md must have nothing under `## Unreleased`")
    return found


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: uv run python -m tools.house.release vX.Y.Z")
    found = disagreements(sys.argv[1], __version__, CHANGELOG.read_text())
    sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
