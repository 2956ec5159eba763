"""Reads the catalogue of short names: the bundled one, or a file or URL of the user."""

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from ouzel.errors import ModelLoadError
from ouzel.model_store.catalogue.entry import CatalogueFile, Entry
from ouzel.model_store.catalogue.remote_file import fetch_file, hide_credentials

BUNDLED = Path(__file__).with_name("catalogue.json")
MAX_CATALOGUE_BYTES = 4 * 2**20
_URL_SCHEMES = ("http://", "https://")
_MAX_SHOWN = 100  # characters of a name in a message

Catalogue = Mapping[str, Entry]  # keys are short names


@cache
def read_catalogue(source: str = "") -> Catalogue:
    """Returns the entries by name; `source` is a file or URL, or empty for the bundled catalogue.

    A source is read once in the life of the process. Raises ModelLoadError.
    """
    if not source:
        return parse_catalogue(BUNDLED.read_bytes(), str(BUNDLED))
    return parse_catalogue(_read_source(source), f"--catalogue {hide_credentials(source)}")


def _read_source(source: str) -> bytes:
    if source.lower().startswith(_URL_SCHEMES):
        return fetch_file(source, MAX_CATALOGUE_BYTES)
    path = Path(os.path.expanduser(source))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CATALOGUE_BYTES + 1)
    except OSError as error:
        raise ModelLoadError(f"--catalogue {source}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_CATALOGUE_BYTES:
        raise ModelLoadError(
            f"--catalogue {source}: must be at most {MAX_CATALOGUE_BYTES // 2**20} MiB"
        )
    return content


def parse_catalogue(content: bytes, origin: str) -> Catalogue:
    """Checks every entry. Raises ModelLoadError, which names the entry and the field."""
    try:
        models = msgspec.json.decode(content, type=CatalogueFile).models
    except msgspec.ValidationError as error:
        raise ModelLoadError(f"{origin}: {_explain_fault(content, str(error))}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelLoadError(f"{origin}: must be JSON: {error}") from error
    catalogue: dict[str, Entry] = {}
    for entry in models:
        _check_entry(entry, origin)
        if entry.name in catalogue:
            raise ModelLoadError(f"{origin}: {entry.name}: name: two entries have this name")
        catalogue[entry.name] = entry
    return catalogue


def _check_entry(entry: Entry, origin: str) -> None:
    """Refuses combinations of fields that the types allow. Raises ModelLoadError."""
    if not entry.repository and entry.packages is None:
        raise ModelLoadError(
            f"{origin}: {entry.name}: repository: is required for an entry without packages"
        )
    if entry.repository and entry.format == "gguf" and not entry.file:
        raise ModelLoadError(
            f"{origin}: {entry.name}: file: is required for the format gguf, as in Q4_K_M"
        )
    if entry.file and entry.format != "gguf":
        raise ModelLoadError(
            f"{origin}: {entry.name}: file: is for the format gguf, given {entry.file!r}"
        )


def _explain_fault(content: bytes, message: str) -> str:
    """Returns the name of the faulty entry, the field and the complaint.

    The message of msgspec ends with a path like `$.models[3].shape.layers`.
    """
    complaint, _, path = message.partition(" - at `")
    path = path.rstrip("`").removeprefix("$").removeprefix(".")
    if not path.startswith("models["):
        return f"{path}: {complaint}" if path else complaint
    number, _, field = path.removeprefix("models[").partition("]")
    field = field.removeprefix(".")
    name = _find_name(content, number) or f"entry {number}"
    return f"{name}: {field}: {complaint}" if field else f"{name}: {complaint}"


def _find_name(content: bytes, number: str) -> str:
    try:
        return str(json.loads(content)["models"][int(number)]["name"])[:_MAX_SHOWN]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
