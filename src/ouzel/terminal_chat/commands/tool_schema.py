"""Makes a tool of a Python function: annotations give the schema, the docstring descriptions."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass

# Any: annotations, and the JSON of a schema.
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from ouzel.terminal_chat.chat_error import ChatError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OF_PARAMETER = re.compile(
    r"^\s*(?::param\s+(?:[\w\[\], .]+\s+)?)?(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$"
)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    parameters: dict[str, Any]
    arguments_type: type[msgspec.Struct]
    function: Callable[..., object]

    def on_the_wire(self) -> dict[str, object]:
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


def make_tool(function: Callable[..., object]) -> Tool:
    """Makes a tool. Raises ChatError, which names the function and the parameter."""
    name = function.__name__
    if not _NAME.fullmatch(name):
        raise ChatError(
            f"{name!r}: the name of a tool must be 1 to 64 ASCII letters, digits and underscores"
        )
    docstring = inspect.getdoc(function) or ""
    arguments_type = _arguments_type(function, name, _parameter_descriptions(docstring))
    try:
        schema = msgspec.json.schema(arguments_type)
    except TypeError as error:
        reason = str(error).partition("\n")[0]
        raise ChatError(f"{name}: an annotation has no JSON schema: {reason}") from error
    return Tool(name, _summary(docstring), _flat(schema, name), arguments_type, function)


def _arguments_type(
    function: Callable[..., object], name: str, descriptions: dict[str, str]
) -> type[msgspec.Struct]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # broad: annotations are expressions that the user wrote
        raise ChatError(f"{name}: its annotations cannot be read: {error}") from error
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise ChatError(
                f"{name}: the parameter {parameter.name} must be a parameter with a name, without "
                "* and not positional-only"
            )
        if parameter.name not in hints:
            raise ChatError(
                f"{name}: the parameter {parameter.name} must have an annotation, as in `city: str`"
            )
        annotation = _described(hints[parameter.name], descriptions.get(parameter.name, ""))
        has_default = parameter.default is not parameter.empty
        fields.append(
            (parameter.name, annotation, *([_default(parameter.default)] if has_default else []))
        )
    try:
        return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError) as error:
        raise ChatError(f"{name}: its parameters have no JSON schema: {error}") from error


def _default(value: object) -> object:
    """Returns a simple default unchanged, so that the schema shows it; hides any other default."""
    is_simple = value is None or isinstance(value, bool | int | float | str)
    return value if is_simple else msgspec.field(default_factory=lambda: value)


def _described(annotation: Any, from_docstring: str) -> Any:
    """Adds a description to an annotation.

    A text in `Annotated[str, "text"]` has precedence over the text in the docstring.
    """
    text = from_docstring
    if get_origin(annotation) is Annotated:
        kind, *extras = get_args(annotation)
        text = next((extra for extra in extras if isinstance(extra, str)), text)
        annotation = kind
        for extra in extras:
            if isinstance(extra, msgspec.Meta):
                annotation = Annotated[annotation, extra]
    return Annotated[annotation, msgspec.Meta(description=text)] if text else annotation


def _summary(docstring: str) -> str:
    """Returns the text of the docstring before the parameters."""
    text = re.split(
        r"(?m)^\s*(?:(?:Args|Arguments|Parameters|Returns|Raises)\b.*:?\s*$|:\w+)",
        docstring,
        maxsplit=1,
    )[0]
    return " ".join(text.split())


def _parameter_descriptions(docstring: str) -> dict[str, str]:
    matches = [_OF_PARAMETER.match(line) for line in docstring.splitlines()]
    return {match[1]: match[2].strip() for match in matches if match is not None}


def _flat(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the schema with the parameters' object at its root instead of a `$ref` to it."""
    definitions = dict(schema["$defs"])
    parameters = {key: value for key, value in definitions.pop(name).items() if key != "title"}
    return parameters | ({"$defs": definitions} if definitions else {})
