"""Defines the citations in the answers of chats, in OpenAI's form."""

from collections.abc import Iterator

import msgspec

from ouzel.responses.hosted.citations import Annotation, UrlCitation


class CitedPage(msgspec.Struct, frozen=True):
    start_index: int  # characters before the marker
    end_index: int
    title: str
    url: str


class ChatAnnotation(msgspec.Struct, frozen=True, tag_field="type", tag="url_citation"):
    url_citation: CitedPage


def show_annotations(found: Iterator[Annotation]) -> list[ChatAnnotation]:
    """Returns the citations of pages; chats have no others."""
    return [
        ChatAnnotation(CitedPage(each.start_index, each.end_index, each.title, each.url))
        for each in found
        if isinstance(each, UrlCitation)
    ]
