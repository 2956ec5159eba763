"""Finds the directory that holds everything that Ouzel makes of models."""

import os
from pathlib import Path


def cache_root(cache_dir: str) -> Path:
    """Returns the directory of the option `cache_dir`; if it is empty, the user's cache."""
    if cache_dir:
        # `~nobody` stays as it is if there is no such user, as in a shell.
        return Path(os.path.expanduser(cache_dir))
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ouzel"
