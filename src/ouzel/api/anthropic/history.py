"""Turns messages in Anthropic's form into chat messages. Errors name the client's own fields.

Adjacent messages of one role are one turn. Results of tools become messages of their own, before
the user's text beside them. A later system message stays one if the chat template supports that,
else it becomes the user's. Claude Code's billing header is no instruction: it is left out.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ouzel.api.anthropic.blocks import (
    AssistantBlock,
    AssistantMessage,
    Base64Image,
    Base64Pdf,
    DocumentBlock,
    HostedBlock,
    ImageBlock,
    McpToolResultBlock,
    McpToolUseBlock,
    Message,
    OwnAssistantBlock,
    PlainText,
    RedactedThinkingBlock,
    Role,
    SearchResultBlock,
    ServerToolUseBlock,
    SystemBlock,
    SystemMessage,
    TextBlock,
    TextContent,
    ThinkingBlock,
    ToolReferenceBlock,
    ToolResultBlock,
    ToolUseBlock,
    UploadedFile,
    UrlImage,
    UrlPdf,
    UserBlock,
    UserMessage,
    WebFetchResultBlock,
    WebSearchResultBlock,
)
from ouzel.api.anthropic.call_ids import restore_call_id
from ouzel.api.anthropic.search_results import read_fetched_page, read_search_result
from ouzel.api.anthropic.turn import Piece, Turn
from ouzel.errors import InvalidRequest
from ouzel.generation import (
    DocumentPart,
    MediaPart,
    NamedFile,
    frame_file,
    make_document_part,
    open_named,
    picture_part,
    require_files,
    uploaded_part,
)
from ouzel.responses.items.packed_text import THINKING
from ouzel.wire.decode import JsonObject
from ouzel.wire.offered_tools import NO_TOOLS, ClientName, ToolNames
from ouzel.wire.validation_errors import show_value

logger = logging.getLogger(__name__)

# The header differs between sessions, and would prevent hits in the prefix cache.
_BILLING_HEADER = "x-anthropic-billing-header:"
_MESSAGE_PATH = re.compile(r"messages\[(\d+)\]")


class History:
    """The turns of one request.

    The answer continues the last turn if it is the assistant's.
    """

    def __init__(
        self,
        system: str | list[TextBlock] | None,
        messages: Sequence[Message],
        *,
        has_later_system: bool,
        tool_names: ToolNames = NO_TOOLS,
    ) -> None:
        """Reads the messages of a request.

        `has_later_system` says whether the chat template supports later system messages, and
        `tool_names` how the model knows the tools that this server runs. Raises InvalidRequest, and
        FilesNeeded for uploaded files.
        """
        if named := _list_files(messages):
            require_files(named)
        self._tool_names = tool_names
        # calls that this server has run, without their results so far, by id
        self._hosted_calls: dict[str, JsonObject] = {}
        self.sources: list[JsonObject] = []  # pages that searches have shown to the model
        # texts whose addresses the model may fetch: the user's, tools' of the client, pages
        self.named_in: list[str] = []
        self.turns: list[Turn] = []  # context edits replace some of them
        self._names: dict[str, str] = {}  # names of the called tools, by call id
        self._newest_call_id = ""  # the client's form of the id
        self._has_later_system = has_later_system
        texts = [text for text in _texts(system or "") if not text.startswith(_BILLING_HEADER)]
        if texts:
            self.turns.append(Turn("system", "system", [*texts]))
        for position, message in enumerate(messages):
            self._read(message, f"messages[{position}]")
        if not self.turns:
            raise InvalidRequest("must have more than changes of the tools", field="messages")
        if self.turns[-1].role == "assistant" and self.turns[-1].is_empty and len(self.turns) > 1:
            self.turns.pop()  # an empty turn cannot be continued

    @property
    def is_unfinished(self) -> bool:
        return self.turns[-1].role == "assistant"

    def chat_messages(self) -> list[JsonObject]:
        return [turn.message() for turn in self.turns]

    def check_continuation(self) -> None:
        """Raises InvalidRequest if the last turn cannot be continued."""
        last = self.turns[-1]
        if last.role == "assistant" and last.calls:
            call = show_value(self._newest_call_id)
            limit = f"must be followed by the result of the tool call {call}"
            raise InvalidRequest(limit, field=last.path)

    def refuse_pictures(self, readable: str) -> None:
        """Raises InvalidRequest for the first picture, which an uploaded file may be.

        `readable` names the kinds of input that the model reads.
        """
        for turn in self.turns:
            for piece in turn.pieces:
                if isinstance(piece, MediaPart):
                    raise InvalidRequest(
                        f"must not be a picture: this model reads {readable}", field=piece.path
                    )

    def restore_field(self, error: InvalidRequest) -> InvalidRequest:
        """Returns the error with the path of the field that the client sent."""
        match = _MESSAGE_PATH.match(error.param or "")
        return error if match is None else error.at(self.turns[int(match[1])].path)

    def _read(self, message: Message, path: str) -> None:
        match message:
            case UserMessage():
                self._read_user(message.content, path)
            case AssistantMessage():
                self._read_assistant(message.content, path)
            case SystemMessage(content=content):
                texts = _texts(content if isinstance(content, str) else _text_blocks(content))
                if content and not texts and not isinstance(content, str):
                    # The message only changes tools; the prompt shows the tools elsewhere.
                    return
                if self._has_later_system or not self.turns or self.turns[-1].role == "system":
                    self._turn("system", path).pieces += texts
                else:
                    self._turn("user", path).pieces += [
                        f"<system>\n{text}\n</system>" for text in texts
                    ]
            case unreachable:
                assert_never(unreachable)

    def _read_user(self, content: str | list[UserBlock], path: str) -> None:
        blocks = content if isinstance(content, list) else [TextBlock(content)]
        pieces: list[Piece] = []
        for position, block in enumerate(blocks):
            at = f"{path}.content[{position}]"
            if isinstance(block, ToolResultBlock):
                self._read_result(block, at)
            else:
                pieces += _read_pieces(block, at)
        self.named_in += [piece for piece in pieces if isinstance(piece, str)]
        if pieces or self.turns[-1:] == [] or self.turns[-1].role not in ("tool", "user"):
            self._turn("user", path).pieces += pieces

    def _read_result(self, block: ToolResultBlock, path: str) -> None:
        call_id = restore_call_id(block.tool_use_id)
        if call_id not in self._names:
            limit = "must be the id of a tool_use block before it"
            raise InvalidRequest(
                f"{limit}, given {show_value(block.tool_use_id)}", field=f"{path}.tool_use_id"
            )
        pieces = _join_texts(_result_pieces(block, path))
        self.named_in += [piece for piece in pieces if isinstance(piece, str)]
        answered: JsonObject = {"tool_call_id": call_id, "name": self._names[call_id]}
        self.turns.append(Turn("tool", path, pieces, answered=answered))

    def _read_assistant(self, content: str | list[AssistantBlock], path: str) -> None:
        self._turn("assistant", path)
        blocks = content if isinstance(content, list) else [TextBlock(content)]
        for position, block in enumerate(blocks):
            at = f"{path}.content[{position}]"
            if isinstance(block, HostedBlock):
                self._read_hosted_block(block, path, at)
            else:
                self._read_assistant_block(block, self._turn("assistant", path), at)

    def _read_hosted_block(self, block: HostedBlock, message_path: str, path: str) -> None:
        """Adds a call that a server has run, when its result is read, and then the result."""
        match block:
            case McpToolUseBlock(id=call_id, name=name, server_name=server):
                self._add_hosted_call(call_id, ClientName(name, server), block.input)
            case ServerToolUseBlock(id=call_id, name=name):
                self._add_hosted_call(call_id, ClientName(name), block.input)
            case McpToolResultBlock(tool_use_id=call_id, content=content):
                self._end_hosted_call(call_id, "\n".join(_texts(content or "")), message_path, path)
            case WebSearchResultBlock(tool_use_id=call_id, content=found):
                text, sources = read_search_result(found)
                self.sources += sources
                self.named_in += [hit.url for hit in found] if isinstance(found, list) else []
                self._end_hosted_call(call_id, text, message_path, path)
            case WebFetchResultBlock(tool_use_id=call_id, content=page):
                text, sources = read_fetched_page(page, 1 + len(self.sources))
                self.sources += sources
                self.named_in.append(text)
                self._end_hosted_call(call_id, text, message_path, path)
            case unreachable:
                assert_never(unreachable)

    def _add_hosted_call(self, call_id: str, name: ClientName, input: JsonObject) -> None:
        function = {"name": self._tool_names.for_model(name), "arguments": input}
        self._hosted_calls[call_id] = {"id": call_id, "type": "function", "function": function}

    def _end_hosted_call(self, call_id: str, text: str, message_path: str, path: str) -> None:
        call = self._hosted_calls.pop(call_id, None)
        if call is None:
            limit = "must be the id of a block with the call before it"
            raise InvalidRequest(
                f"{limit}, given {show_value(call_id)}", field=f"{path}.tool_use_id"
            )
        self._turn("assistant", message_path).calls.append(call)
        function = call["function"]
        assert isinstance(function, dict)
        answered: JsonObject = {"tool_call_id": call_id, "name": function["name"]}
        self.turns.append(Turn("tool", path, [text], answered=answered))

    def _read_assistant_block(self, block: OwnAssistantBlock, turn: Turn, path: str) -> None:
        match block:
            case TextBlock(text=text):
                turn.pieces += [text] if text else []
            case ThinkingBlock(thinking=thinking, signature=signature):
                signed = THINKING.unpack(signature or "")
                if signed is None or thinking not in ("", signed):
                    logger.info("left out: %s, another server signed its thinking", path)
                else:
                    turn.reasoning.append(signed)
            case RedactedThinkingBlock():
                logger.info(
                    "left out: %s, only the server that wrote its thinking can read it", path
                )
            case ToolUseBlock():
                call_id = restore_call_id(block.id)
                self._names[call_id], self._newest_call_id = block.name, block.id
                function = {"name": block.name, "arguments": block.input}
                turn.calls.append({"id": call_id, "type": "function", "function": function})
            case unreachable:
                assert_never(unreachable)

    def _turn(self, role: Role, path: str) -> Turn:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role, path))
        return self.turns[-1]


def _text_blocks(content: Sequence[SystemBlock]) -> list[TextBlock]:
    return [block for block in content if isinstance(block, TextBlock)]


def _texts(content: str | list[TextBlock]) -> list[str]:
    """Returns the texts, without empty ones, which may carry a mark for the cache."""
    texts = [content] if isinstance(content, str) else [block.text for block in content]
    return [text for text in texts if text]


def _result_pieces(block: ToolResultBlock, path: str) -> list[Piece]:
    failed: list[Piece] = ["The tool failed."] if block.is_error else []
    if not isinstance(block.content, list):
        return [*failed, block.content or ""]
    inner = (
        _read_pieces(each, f"{path}.content[{position}]")
        for position, each in enumerate(block.content)
    )
    return [*failed, *(piece for pieces in inner for piece in pieces)]


def _read_pieces(
    block: TextBlock | ImageBlock | DocumentBlock | SearchResultBlock | ToolReferenceBlock,
    path: str,
) -> Sequence[Piece]:
    match block:
        case TextBlock():
            return _texts([block])
        case ImageBlock(source=source):
            return [_picture(source, f"{path}.source")]
        case DocumentBlock():
            return _document(block, f"{path}.source")
        case SearchResultBlock(content=content, source=where, title=title):
            return [_frame("search_result", [title, where], "\n".join(_texts(content)))]
        case ToolReferenceBlock(tool_name=name):
            return [f"The tool {name} can be called."]
        case unreachable:
            assert_never(unreachable)


def _picture(source: Base64Image | UrlImage | UploadedFile, path: str) -> MediaPart:
    match source:
        case UploadedFile(file_id=file_id):
            return picture_part({"file_id": file_id}, path)
        case Base64Image(data=data):
            return MediaPart(f"{path}.data", f"data:;base64,{data}")
        case UrlImage(url=url):
            return MediaPart(f"{path}.url", url)
        case unreachable:
            assert_never(unreachable)


def _document(block: DocumentBlock, path: str) -> Sequence[Piece]:
    heads = [block.title, block.context]
    pages: Piece
    match block.source:
        case PlainText(data=text):
            return [frame_file(heads, text)]
        case TextContent() as source:
            return [frame_file(heads, _join_source(source))]
        case UploadedFile(file_id=file_id):
            pages = _uploaded_document(file_id, heads, path)
        case Base64Pdf(data=data):
            pages = make_document_part(f"{path}.data", f"data:;base64,{data}")
        case UrlPdf(url=url):
            pages = make_document_part(f"{path}.url", url)
        case unreachable:
            assert_never(unreachable)
    if not any(heads) or isinstance(pages, str):
        return [pages]
    framed = replace(pages, heads=None) if isinstance(pages, DocumentPart) else pages
    return [
        "\n".join(["<document>", *(head for head in heads if head), ""]),
        framed,
        "\n</document>",
    ]


def _uploaded_document(file_id: str, heads: Sequence[str | None], path: str) -> Piece:
    file = open_named({"file_id": file_id}, path)
    assert file is not None
    if isinstance(file.content, str):
        title, *others = heads
        return frame_file([title or file.filename, *others], file.content)
    return uploaded_part(file, f"{path}.file_id", "auto")


def _list_files(messages: Sequence[Message]) -> list[NamedFile]:
    """Returns the uploaded files that the blocks name, nested blocks included."""
    named: list[NamedFile] = []
    for number, message in enumerate(messages):
        if isinstance(message, UserMessage) and isinstance(message.content, list):
            named += _list_named(message.content, f"messages[{number}].content")
    return named


def _list_named(blocks: Sequence[object], path: str) -> list[NamedFile]:
    named: list[NamedFile] = []
    for position, block in enumerate(blocks):
        at = f"{path}[{position}]"
        match block:
            case (
                ImageBlock(source=UploadedFile(file_id))
                | DocumentBlock(source=UploadedFile(file_id))
            ):
                named.append(NamedFile(file_id, f"{at}.source.file_id"))
            case ToolResultBlock(content=[*inner]):
                named += _list_named(inner, f"{at}.content")
            case _:
                pass
    return named


def _join_source(source: TextContent) -> str:
    return "\n".join(_texts(source.content))


def _frame(name: str, heads: Sequence[str | None], text: str) -> str:
    return "\n".join([f"<{name}>", *(head for head in heads if head), text, f"</{name}>"])


def _join_texts(pieces: Sequence[Piece]) -> list[Piece]:
    """Joins adjacent texts."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, str) and isinstance(joined[-1], str):
            joined[-1] += f"\n{piece}"
        else:
            joined.append(piece)
    return joined
