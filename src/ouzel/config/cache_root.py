"""What is made of models is kept in one directory for all of them."""

import os
from pathlib import Path


def cache_root(cache_dir: str) -> Path:
    """Takes the option `cache_dir`; empty is the user's cache."""
    if cache_dir:
        return Path(os.path.expanduser(cache_dir))  # `~` stays where it is nobody's, as in a shell
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ouzel"
