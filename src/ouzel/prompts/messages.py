"""Checks the chat messages of a request and brings them into one form.

After this step:

- every message has a role and a content: a string or a non-empty list of parts (texts and
  documents; for a model that sees or hears, also pictures, videos and sounds);
- keys with the value null are gone, because templates ask `'tool_calls' in message`;
- tool calls have a function name and arguments;
- unknown keys are unchanged, because templates may know them.

An error names its field by the path, as in `messages[2].content[0].type`.
"""

import json
from dataclasses import dataclass
from typing import assert_never

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import ContentPart, DocumentPart, MediaPart, SoundPart
from ouzel.prompts.media_readers.document_parts import file_part
from ouzel.prompts.media_readers.picture_parts import KINDS as PICTURES
from ouzel.prompts.media_readers.picture_parts import picture_part
from ouzel.prompts.media_readers.sound_parts import KINDS as SOUNDS
from ouzel.prompts.media_readers.sound_parts import sound_part
from ouzel.prompts.media_readers.uploaded_files import NamedFile, name_file, require_files
from ouzel.prompts.media_readers.video_parts import KINDS as VIDEOS
from ouzel.prompts.media_readers.video_parts import video_part
from ouzel.prompts.media_readers.wrong_values import invalid
from ouzel.types.tools import CUSTOM_ARGUMENT

Message = dict[str, object]

# Types of media parts in normalised messages -> types that chat templates know.
MEDIA = {"image": "image", "video": "video", "document": "image", "audio": "audio"}

_FILE = "file"

_STRING_KEYS = ("name", "tool_call_id", "reasoning_content", "refusal")


@dataclass(frozen=True, slots=True)
class ReadableMedia:
    """Tells which kinds of media the model reads, besides text."""

    pictures: bool = False
    videos: bool = False
    documents: bool = False  # their pages or their texts
    sounds: bool = False

    @property
    def part_types(self) -> str:
        return " or ".join(
            f'"{name}"'
            for name, is_read in (
                ("text", True),
                ("image_url", self.pictures),
                ("video_url", self.videos),
                (_FILE, self.documents),
                (SOUNDS[0], self.sounds),
            )
            if is_read
        )

    def describe_input(self, kind: object) -> str:
        """Describes the kinds of input that the model reads, for the error about a part `kind`."""
        kinds = [("pictures", self.pictures), ("videos", self.videos), ("sounds", self.sounds)]
        names = [name for name, is_read in kinds if is_read]
        if not names:
            return "text only"
        no_video = ", no videos" if kind in VIDEOS and self.pictures else ""
        return f"{', '.join(['text', *names[:-1]])} and {names[-1]}{no_video}"


TEXT_ONLY = ReadableMedia()


def normalise_messages(messages: object, readable: ReadableMedia = TEXT_ONLY) -> list[Message]:
    """Returns checked copies of the messages.

    A picture becomes `{"type": "image", "media": MediaPart}`, a video `{"type": "video", "media":
    VideoPart}` and a sound `{"type": "audio", "media": SoundPart}`, if the model reads them. A file
    becomes `{"type": "document", "media": DocumentPart}`, a picture, or a text. Raises
    InvalidRequest, and FilesNeeded for uploaded files.

    APIs with other forms of parts pass a MediaPart, a DocumentPart or a SoundPart instead, with the
    path of their own field.
    """
    if not isinstance(messages, list) or not messages:
        raise invalid("messages", "a non-empty list", messages)
    if named := _list_files(messages):
        require_files(named)
    return [
        _message(entry, f"messages[{position}]", readable)
        for position, entry in enumerate(messages)
    ]


def _list_files(messages: list[object]) -> list[NamedFile]:
    """Returns the uploaded files that the messages name."""
    named: list[NamedFile] = []
    for number, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        for position, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") == _FILE:
                named += name_file(
                    part.get(_FILE), f"messages[{number}].content[{position}].{_FILE}"
                )
    return named


def collect_media(messages: list[Message]) -> list[ContentPart]:
    """Returns the pictures, videos and documents of normalised messages, in their order."""
    contents = (message["content"] for message in messages)
    parts = (part for content in contents if isinstance(content, list) for part in content)
    return [part["media"] for part in parts if part["type"] in MEDIA]


def _message(entry: object, path: str, readable: ReadableMedia) -> Message:
    fields = _object(entry, path)
    message = {key: value for key, value in fields.items() if value is not None}
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise invalid(f"{path}.role", "a non-empty string", fields.get("role"))
    for key in _STRING_KEYS:
        _check_string(message.get(key, ""), f"{path}.{key}")
    if "audio" in message:
        # an earlier answer of a model that speaks
        complaint = "must not be given: this server keeps no sounds"
        raise InvalidRequest(complaint, field=f"{path}.audio")
    if role == "assistant":
        _answer_with_refusal(message, path)
    may_be_absent = role == "assistant"
    message["content"] = _content(
        message.get("content"), f"{path}.content", readable, may_be_absent=may_be_absent
    )
    _rename_old_forms(message)
    tool_calls = message.pop("tool_calls", [])
    if not isinstance(tool_calls, list):
        raise invalid(f"{path}.tool_calls", "a list", tool_calls)
    if tool_calls:
        message["tool_calls"] = [
            _tool_call(call, f"{path}.tool_calls[{position}]")
            for position, call in enumerate(tool_calls)
        ]
    return message


def _answer_with_refusal(message: Message, path: str) -> None:
    """Turns the refusal of an earlier answer into the content of the message."""
    refusal = message.pop("refusal", "")
    if refusal and message.get("content"):
        raise InvalidRequest("must not be given beside a content", field=f"{path}.refusal")
    if refusal:
        message["content"] = refusal


def _rename_old_forms(message: Message) -> None:
    """Replaces OpenAI's forms from before tools: `function_call` and the role `function`."""
    call = message.pop("function_call", None)
    if call is not None and "tool_calls" not in message:
        message["tool_calls"] = [{"type": "function", "function": call}]
    if message["role"] == "function":
        message["role"] = "tool"


def _content(content: object, path: str, readable: ReadableMedia, *, may_be_absent: bool) -> object:
    """Checks the content of a message and returns it with prepared parts.

    An assistant's content may be null or absent, for example if it only called tools; the empty
    string is returned.
    """
    if isinstance(content, str):
        return content
    if content is None and may_be_absent:
        return ""
    if isinstance(content, list) and content:
        return [
            _part(part, f"{path}[{position}]", readable) for position, part in enumerate(content)
        ]
    raise invalid(path, "a string or a non-empty list of content parts", content)


def _part(entry: object, path: str, readable: ReadableMedia) -> Message:
    if isinstance(entry, MediaPart | DocumentPart | SoundPart):
        return _media(entry, readable)
    part = _object(entry, path)
    kind = part.get("type")
    _check_string(kind, f"{path}.type")
    if kind == _FILE:
        own_path = f"{path}.{_FILE}"
        content = file_part(_object(part.get(_FILE), own_path), own_path)
        if isinstance(content, str):
            return {"type": "text", "text": content}
        return _media(content, readable)
    if (media := _readable_part(part, path, readable)) is not None:
        return media
    if kind == "refusal":  # a part of an earlier answer, sent back as history
        part = {"type": "text", "text": part.get("refusal")}
    elif kind != "text":
        raise _unreadable(kind, path, readable)
    _check_string(part.get("text"), f"{path}.text")
    return part


def _readable_part(part: Message, path: str, readable: ReadableMedia) -> Message | None:
    """Returns the message part for media that the model reads, None for other parts."""
    kind = part["type"]
    if readable.pictures and kind in PICTURES:
        return {"type": "image", "media": picture_part(part, path)}
    if readable.videos and kind in VIDEOS:
        return {"type": "video", "media": video_part(part, path)}
    if readable.sounds and kind in SOUNDS:
        return {"type": "audio", "media": sound_part(part, path)}
    return None


def _media(part: MediaPart | DocumentPart | SoundPart, readable: ReadableMedia) -> Message:
    """Returns the message part for a picture, a document or a sound. Raises InvalidRequest."""
    match part:
        case MediaPart():
            name, kind, is_read = "picture", "image", readable.pictures
        case DocumentPart():
            name, kind, is_read = "document", "document", readable.documents
        case SoundPart():
            name, kind, is_read = "sound", "audio", readable.sounds
        case _:
            assert_never(part)
    if not is_read:
        raise InvalidRequest(
            f"must not be a {name}: this model reads {readable.describe_input(_FILE)}",
            field=part.path,
        )
    return {"type": kind, "media": part}


def _unreadable(kind: object, path: str, readable: ReadableMedia) -> InvalidRequest:
    expected, reads = readable.part_types, readable.describe_input(kind)
    return InvalidRequest(
        f'must be {expected}, given "{kind}": this model reads {reads}', field=f"{path}.type"
    )


def _tool_call(entry: object, path: str) -> Message:
    call = _object(entry, path)
    if call.get("type") == "custom":
        call = _as_function_call(call, path)
    function = _object(call.get("function"), f"{path}.function")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(f"{path}.function.name", "a non-empty string", name)
    arguments = function.get("arguments")
    if arguments is None:
        arguments = "{}"
    if not isinstance(arguments, str | dict):
        raise invalid(f"{path}.function.arguments", "a string or an object", arguments)
    return {
        **call,
        "type": call.get("type", "function"),
        "function": {**function, "arguments": arguments},
    }


def _as_function_call(call: Message, path: str) -> Message:
    """Turns a call of a custom tool into a function call with the text as the only argument."""
    custom = _object(call.get("custom"), f"{path}.custom")
    name, text = custom.get("name"), custom.get("input")
    if not isinstance(name, str) or not name:
        raise invalid(f"{path}.custom.name", "a non-empty string", name)
    _check_string(text, f"{path}.custom.input")
    others = {key: value for key, value in call.items() if key not in ("custom", "type")}
    return {
        **others,
        "type": "function",
        "function": {"name": name, "arguments": custom_arguments(text)},
    }


def custom_arguments(text: object) -> str:
    """Returns the JSON arguments of a custom tool's call with this text."""
    return json.dumps({CUSTOM_ARGUMENT: text}, ensure_ascii=False)


def _object(value: object, path: str) -> Message:
    if not isinstance(value, dict):
        raise invalid(path, "an object", value)
    return value


def _check_string(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise invalid(path, "a string", value)
