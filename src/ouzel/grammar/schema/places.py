"""Finds the places of schemas in their documents, and resolves references."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urljoin

# keywords whose values contain no schemas
_CONSTANTS = frozenset(("const", "enum", "default", "example", "examples"))
# keywords that map names to schemas
_MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a schema in its document."""

    document: "Document"
    base: str  # references are relative to it
    path: str
    is_combined: bool = False  # another schema describes the same value

    def of(self, schema: Mapping[str, object]) -> "Place":
        """Returns the place of a schema that stands here.

        Its `$id` changes the base of references.
        """
        return Place(self.document, _base(schema, self.base), self.path, self.is_combined)

    def inner(self, *names: str, is_combined: bool = False) -> "Place":
        return Place(self.document, self.base, "/".join((self.path, *names)), is_combined)


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document; finds the targets of references."""

    root: object
    schemas: Mapping[str, object]  # schemas by absolute `$id`, and by `$id#anchor`

    def find(self, reference: str, base: str) -> object:
        """Returns the target of a reference.

        Raises KeyError, and ValueError for an invalid address.
        """
        address, _, fragment = urljoin(base, reference).partition("#")
        if reference.startswith("#"):
            address = base.partition("#")[0]
        if fragment and not fragment.startswith("/"):
            return self.schemas[f"{address}#{fragment}"]
        found = self.schemas[address]
        for name in fragment.split("/")[1:]:
            key = unquote(name).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = (
                    found[int(key)] if key.isdecimal() and int(key) < len(found) else _missing(key)
                )
            else:
                found = found[key] if isinstance(found, dict) else _missing(key)
        return found

    def find_or_none(self, reference: object, base: str) -> object:
        """Returns the target of a reference, or None if there is none."""
        try:
            return self.find(reference, base) if isinstance(reference, str) else None
        except (KeyError, ValueError):
            return None


def _missing(key: str) -> object:
    raise KeyError(key)


def index_document(root: object) -> Document:
    schemas: dict[str, object] = {"": root}
    pending: list[tuple[object, str, bool]] = [(root, "", False)]
    while pending:
        value, base, is_map = pending.pop()
        if is_map and isinstance(value, dict):
            pending += [(inner, base, False) for inner in value.values()]
        elif isinstance(value, dict):
            base = _base(value, base)
            schemas.setdefault(base.partition("#")[0], value)
            if isinstance(anchor := value.get("$anchor"), str):
                schemas[f"{base.partition('#')[0]}#{anchor}"] = value
            parts = ((name, inner) for name, inner in value.items() if name not in _CONSTANTS)
            pending += [(inner, base, name in _MAPS) for name, inner in parts]
        elif isinstance(value, list):
            pending += [(inner, base, False) for inner in value]
    return Document(root, schemas)


def _base(schema: Mapping[str, object], base: str) -> str:
    identifier = schema.get("$id")
    return urljoin(base, identifier) if isinstance(identifier, str) else base
