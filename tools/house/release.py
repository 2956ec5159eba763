"""Checks that a tag, the version, the changelog and the packages' index agree; exits with 1 if not.

uv run python -m tools.house.release v1.2.3
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ouzel import __version__

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
NAMES = ("ouzel", "ouzel-kernels")
# `--pre` lists release candidates too. The settings of uv and pip on this machine name the index.
_INDEX_COMMAND = ("uv", "tool", "run", "pip", "index", "versions", "--pre")
_UNKNOWN_NAME = "No matching distribution found"


def disagreements(tag: str, version: str, changelog: str) -> list[str]:
    """Returns a sentence for each disagreement of the tag, the version and the changelog."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        found.append(f"the version must be X.Y.Z or X.Y.ZrcN, given {version}")
    if tag != f"v{version}":
        found.append(
            f"the tag must be v{version}, the version in src/ouzel/__init__.py, given {tag}"
        )
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        found.append(f"CHANGELOG.md must have a heading `## {version} - YYYY-MM-DD`")
    if re.search(r"^## Unreleased$(?!\s*(^## |\Z))", changelog, re.M):
        found.append("CHANGELOG.md must have nothing under `## Unreleased`")
    return found


def name_disagreements(
    published: Iterable[str], version: str, changelog: str, *, name: str
) -> list[str]:
    """Returns a sentence each if another project has the name, or if the version is published.

    `published` has the versions that the index lists under the name. Every version of ours has a
    heading in the changelog; a version without a heading was published by somebody else.
    """
    headings = set(re.findall(r"^## (\S+) - ", changelog, re.M))
    foreign = sorted(set(published) - headings)
    found = []
    if foreign:
        found.append(
            f"the name {name} is taken on the index: CHANGELOG.md has no heading for "
            f"{', '.join(foreign)}. Choose another name in pyproject.toml, and change every "
            "command that installs it"
        )
    if version in published:
        found.append(f"{name} {version} is on the index already: a new release needs a new version")
    return found


def read_published(output: str, errors: str, *, name: str) -> list[str]:
    """Reads the versions from pip's output; none if the index does not know the name."""
    if _UNKNOWN_NAME in errors:
        return []
    listed = re.search(r"^Available versions: (.+)$", output, re.M)
    if listed is None:
        raise ValueError(
            f"the index could not be asked for {name}: {errors.strip() or output.strip()}"
        )
    return listed[1].split(", ")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: uv run python -m tools.house.release vX.Y.Z")
    changelog = CHANGELOG.read_text()
    found = disagreements(sys.argv[1], __version__, changelog)
    for name in NAMES:
        asked = subprocess.run([*_INDEX_COMMAND, name], capture_output=True, text=True, check=False)
        try:
            published = read_published(asked.stdout, asked.stderr, name=name)
        except ValueError as error:
            sys.exit(str(error))
        found += name_disagreements(published, __version__, changelog, name=name)
    exit_with(found)


def exit_with(faults: list[str]) -> None:
    """Ends the program with exit status 1 and the faults, one a line; returns if there are none."""
    if faults:  # sys.exit("") would be exit status 1 as well
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
