"""Reads adapters from entries of the form NAME=PATH, and the parts that adapters may have."""

from collections.abc import Iterable
from typing import Literal

# parts of adapters beside the matrices A and B of layers; a graph has inputs for each
AdapterPart = Literal["dora", "bias", "norm", "embedding", "head"]

_MAX_NAME_LEN = 200


def read_adapters(entries: Iterable[str]) -> dict[str, str]:
    """Returns the directories of the adapters by name. Raises ValueError."""
    adapters: dict[str, str] = {}
    for entry in entries:
        name, separator, path = entry.partition("=")
        if not (name and separator and path):
            raise ValueError(f"each entry must be NAME=PATH, found {entry!r}")
        if (fault := fault_of_name(name)) is not None:
            raise ValueError(f"the name of an adapter {fault}, found {name[:_MAX_NAME_LEN]!r}")
        if name in adapters:
            raise ValueError(f"the name {name!r} must not appear twice")
        adapters[name] = path
    return adapters


def fault_of_name(name: str) -> str | None:
    """Returns the rule that a name breaks, or None: names appear in logs and metric labels."""
    if len(name) > _MAX_NAME_LEN:
        return f"must have <= {_MAX_NAME_LEN} characters"
    if not name.isprintable() or name != name.strip() or "," in name:
        return "must be printable, without commas and without spaces at its ends"
    return None
