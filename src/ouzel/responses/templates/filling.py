"""Fills the template of a response: its texts get variables, its defaults become fields.

The values of variables are put into the texts as they are: `{{name}}` in a value is text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from ouzel.errors import InvalidRequest
from ouzel.generation import ReadableMedia
from ouzel.responses.item_fields import MEDIA, invalid_value, read_part
from ouzel.responses.templates.library import PromptLibrary, find_version
from ouzel.responses.templates.reference import PromptReference
from ouzel.responses.templates.template import VARIABLE, PromptVersion
from ouzel.wire.decode import JsonObject, decode_object
from ouzel.wire.validation_errors import show_value

_TEXT = "input_text"
# A default is left out beside fields of the request that say the same in another way.
_OTHER_WAYS: Mapping[str, Collection[str]] = {
    "max_output_tokens": ("max_tokens", "max_completion_tokens", "max_new_tokens"),
    "reasoning": ("reasoning_effort",),
    "text": ("response_format",),
}


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """The template of a response, with the values of its variables in the texts."""

    reference: PromptReference  # the version is the chosen one
    messages: tuple[JsonObject, ...]  # they come before the input, and are not stored as input


class _OnlyPrompt(msgspec.Struct):
    prompt: PromptReference | None = None


def fill_template(
    body: JsonObject, library: PromptLibrary, *, readable: ReadableMedia
) -> tuple[JsonObject, FilledTemplate | None]:
    """Returns the body with the fields of its template, and the filled template.

    A body without `prompt` is unchanged, and has none.

    Raises InvalidRequest for a variable that is unknown, missing or wrong, and PromptNotFound.
    """
    reference = decode_object({"prompt": body.get("prompt")}, _OnlyPrompt).prompt
    if reference is None:
        return body, None
    template = library.find(reference.id, "prompt.id")
    version = find_version(template, reference.version)
    values = reference.variables or {}
    _check_names(values, version, template.id)
    texts = _Texts(
        {
            name: _read_value(value, f"prompt.variables.{name}", readable=readable)
            for name, value in values.items()
        }
    )
    own = {name: value for name, value in body.items() if value is not None}
    fields = {**_choose_defaults(version.defaults, own), **own}
    if version.instructions is not None and "instructions" not in own:
        fields["instructions"] = texts.fill_text(version.instructions)
    messages = tuple(
        {**message, "content": texts.fill_content(message["content"])}
        for message in version.messages
    )
    return fields, FilledTemplate(replace(reference, version=version.name), messages)


def _choose_defaults(defaults: JsonObject, own: Collection[str]) -> JsonObject:
    return {
        name: value
        for name, value in defaults.items()
        if not any(other in own for other in _OTHER_WAYS.get(name, ()))
    }


def _check_names(values: Collection[str], version: PromptVersion, prompt_id: str) -> None:
    of = f"the prompt {prompt_id}, version {version.name}"
    for name in values:
        if name not in version.variables:
            known = ", ".join(version.variables) or "none"
            raise InvalidRequest(
                f"is no variable of {of}, whose variables are: {known}",
                field=f"prompt.variables.{name[:64]}",
            )
    for name in version.variables:
        if name not in values:
            raise InvalidRequest(f"is missing; {of} needs it", field=f"prompt.variables.{name}")


def _read_value(value: object, field: str, *, readable: ReadableMedia) -> str | JsonObject:
    """Returns a text, or a part with a picture or a file."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise invalid_value(field, "a text or a part", value)
    read_part(value, field, (_TEXT, *MEDIA), readable=readable)
    return str(value["text"]) if value["type"] == _TEXT else value


class _Texts:
    """Fills texts with the values of variables."""

    def __init__(self, values: Mapping[str, str | JsonObject]) -> None:
        self._values = values

    def fill_text(self, text: str) -> str:
        """Fills a text that cannot hold a picture or a file."""
        pieces = self._split(text)
        return "".join(self._require_text(name, value) for name, value in pieces)

    def fill_content(self, content: object) -> str | list[JsonObject]:
        """Fills the content of a message; a picture or file in a text becomes a part between."""
        if isinstance(content, str):
            return self.fill_text(content)
        assert isinstance(content, list)
        filled: list[JsonObject] = []
        for part in content:
            filled += self._fill_part(part) if part["type"] == _TEXT else [part]
        return filled

    def _fill_part(self, part: JsonObject) -> list[JsonObject]:
        filled: list[JsonObject] = []
        text = ""
        for _, value in self._split(str(part["text"])):
            if isinstance(value, str):
                text += value
                continue
            if text:
                filled.append({**part, "text": text})
            filled.append(value)
            text = ""
        return [*filled, {**part, "text": text}] if text or not filled else filled

    def _split(self, text: str) -> Sequence[tuple[str, str | JsonObject]]:
        """Returns the pieces of a text: the name of a variable, or "", and its value."""
        pieces: list[tuple[str, str | JsonObject]] = []
        position = 0
        for match in VARIABLE.finditer(text):
            pieces.append(("", text[position : match.start()]))
            pieces.append((match[1], self._values[match[1]]))
            position = match.end()
        return [*pieces, ("", text[position:])]

    def _require_text(self, name: str, value: str | JsonObject) -> str:
        if isinstance(value, str):
            return value
        raise InvalidRequest(
            f"must be a text: it stands in the instructions or in a message of the assistant, "
            f"given {show_value(value)}",
            field=f"prompt.variables.{name}",
        )
