"""Adapts docs/ for the site: mkdocs calls the functions `on_…`.

The documents link files outside docs/ by relative paths, which work in a clone and on a code host.
On the site these links lead to the repository's address (`extra.repository` in mkdocs.yml).
"""

import os
import re
from pathlib import Path
from typing import Any  # mkdocs' own types are not installed with the tests

_DECISIONS = "Decisions"
_LINK = re.compile(r"\]\(([^)\s#]+)([^)\s]*)\)")


def on_config(config: Any, **_: Any) -> Any:
    """Lists the pages of docs/decisions/ in the navigation, by their numbers."""
    docs = Path(config["docs_dir"])
    pages = sorted(page.relative_to(docs).as_posix() for page in (docs / "decisions").glob("0*.md"))
    explanation = next(part for item in config["nav"] if (part := item_named(item, "Explanation")))
    entry = next(item for item in explanation if item_named(item, _DECISIONS) is not None)
    entry[_DECISIONS] = ["decisions/README.md", *pages]
    return config


def item_named(item: Any, name: str) -> list[Any] | None:
    """Returns the entries below a section of the navigation, and None for another item."""
    return item.get(name) if isinstance(item, dict) else None


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Leads links to files outside docs/ to the repository."""
    docs = Path(config["docs_dir"])
    directory = os.path.dirname(page.file.src_uri)

    def replace(match: re.Match[str]) -> str:
        target, rest = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = os.path.normpath(os.path.join(docs.name, directory, target))
        if path.startswith(f"{docs.name}/") and not target.endswith("/"):
            return match[0]
        if not (docs.parent / path).exists():
            return match[0]
        return f"]({config['extra']['repository']}/{path}{rest})"

    return _LINK.sub(replace, markdown)
