"""Reads and joins the content of messages: a text, or parts (texts and media)."""

from collections.abc import Sequence
from typing import assert_never

from ouzel.generation import DocumentPart, MediaPart, SoundPart
from ouzel.responses.item_fields import Message

# These words stand for media in a text.
_PICTURE, _DOCUMENT, _SOUND = "[picture]", "[document]", "[sound]"

Media = MediaPart | DocumentPart | SoundPart
Part = Message | Media


def join_texts(message: Message) -> str:
    """Joins the texts of the content by line breaks; a word stands for each of the media."""
    return "\n".join(_text(part) for part in _parts(message))


def list_media(message: Message) -> list[Media]:
    return [part for part in _parts(message) if isinstance(part, Media)]


def add_media(text: str, media: Sequence[Media]) -> object:
    """Returns a content with the text and the media."""
    return [{"type": "text", "text": text}, *media] if media else text


def join_content(messages: Sequence[Message]) -> object:
    """Joins the contents of several messages, with an empty line between them."""
    if not any(list_media(message) for message in messages):
        return "\n\n".join(map(join_texts, messages))
    parts = _parts(messages[0])
    for message in messages[1:]:
        parts += [{"type": "text", "text": "\n\n"}, *_parts(message)]
    return parts


def _parts(message: Message) -> list[Part]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    assert isinstance(content, list)
    return [*content]


def _text(part: Part) -> str:
    match part:
        case MediaPart():
            return _PICTURE
        case DocumentPart():
            return _DOCUMENT
        case SoundPart():
            return _SOUND
        case dict():
            return str(part["text"])
        case unreachable:
            assert_never(unreachable)
