"""Adapters are given as NAME=PATH."""

from collections.abc import Iterable


def read_adapters(entries: Iterable[str]) -> dict[str, str]:
    """Returns the directories by name. Raises ValueError."""
    adapters: dict[str, str] = {}
    for entry in entries:
        name, separator, path = entry.partition("=")
        if not (name and separator and path):
            raise ValueError(f"lora must be NAME=PATH, found {entry!r}")
        if name in adapters:
            raise ValueError(f"lora names {name!r} twice")
        adapters[name] = path
    return adapters
