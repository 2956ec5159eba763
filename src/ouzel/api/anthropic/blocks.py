"""Defines the blocks of messages, as clients send them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.api.anthropic.cache_control import CacheControl
from ouzel.api.anthropic.tools import ClientTool

Citations = Annotated[object, Meta(description="Not used: answers have no citations.")]
Text = Annotated[str, Meta(description="The text.")]


class TextBlock(msgspec.Struct, frozen=True, tag="text"):
    text: Text
    cache_control: CacheControl = None
    citations: Citations = None


class Base64Image(msgspec.Struct, frozen=True, tag="base64"):
    data: Annotated[str, Meta(description="The image file in base64.")]
    media_type: Annotated[
        str | None, Meta(description="Not used: the content shows the type of the file.")
    ] = None


class UrlImage(msgspec.Struct, frozen=True, tag="url"):
    url: Annotated[
        str,
        Meta(description="A data URL; an http or https URL or a path, if the operator allows it."),
    ]


class UploadedFile(msgspec.Struct, frozen=True, tag="file"):
    file_id: Annotated[str, Meta(min_length=1, description="The id of an uploaded file.")]


class ImageTransformations(msgspec.Struct, frozen=True):
    oversized_image: Annotated[
        Literal["downsize"] | None,
        Meta(description="Only downsize: larger images are scaled to the model's size."),
    ] = None


class ImageBlock(msgspec.Struct, frozen=True, tag="image"):
    source: Annotated[
        Base64Image | UrlImage | UploadedFile,
        Meta(description="The image, for models that accept images."),
    ]
    transformations: Annotated[
        ImageTransformations | None,
        Meta(description="Changes that the server may make to the image."),
    ] = None
    cache_control: CacheControl = None


class PlainText(msgspec.Struct, frozen=True, tag="text"):
    data: Text
    media_type: Annotated[str | None, Meta(description="text/plain.")] = None


class TextContent(msgspec.Struct, frozen=True, tag="content"):
    content: Annotated[str | list[TextBlock], Meta(description="A text, or several text blocks.")]


class Base64Pdf(msgspec.Struct, frozen=True, tag="base64"):
    data: Annotated[str, Meta(description="The file of a PDF or a Word document.")]
    media_type: Annotated[
        str | None, Meta(description="Not used: the content shows the type of the file.")
    ] = None


class UrlPdf(msgspec.Struct, frozen=True, tag="url"):
    url: Annotated[
        str,
        Meta(description="A data URL; an http or https URL or a path, if the operator allows it."),
    ]


class DocumentBlock(msgspec.Struct, frozen=True, tag="document"):
    source: Annotated[
        PlainText | TextContent | Base64Pdf | UrlPdf | UploadedFile,
        Meta(
            description="A text; a Word file, which becomes a text; or a PDF, whose pages become "
            "images; for models without images, texts."
        ),
    ]
    title: Annotated[str | None, Meta(description="Shown before the document's text.")] = None
    context: Annotated[str | None, Meta(description="Shown before the document's text.")] = None
    cache_control: CacheControl = None
    citations: Citations = None


class SearchResultBlock(msgspec.Struct, frozen=True, tag="search_result"):
    content: Annotated[list[TextBlock], Meta(description="The texts of the search result.")]
    source: Annotated[str, Meta(description="The source, such as a URL.")]
    title: Annotated[str, Meta(description="The title of the source.")]
    cache_control: CacheControl = None
    citations: Citations = None


class ToolReferenceBlock(msgspec.Struct, frozen=True, tag="tool_reference"):
    tool_name: Annotated[str, Meta(description="The name of a tool from a search for tools.")]
    cache_control: CacheControl = None


ResultContent = list[
    TextBlock | ImageBlock | DocumentBlock | SearchResultBlock | ToolReferenceBlock
]


class ToolResultBlock(msgspec.Struct, frozen=True, tag="tool_result"):
    tool_use_id: Annotated[str, Meta(description="The `id` of the tool_use block before it.")]
    content: Annotated[str | ResultContent | None, Meta(description="The output of the tool.")] = (
        None
    )
    is_error: Annotated[bool | None, Meta(description="Tells the model that the tool failed.")] = (
        None
    )
    cache_control: CacheControl = None


class ToolUseBlock(msgspec.Struct, frozen=True, tag="tool_use"):
    id: Annotated[str, Meta(min_length=1, description="The id from the answer.")]
    name: Annotated[str, Meta(min_length=1, description="The name of the tool.")]
    input: Annotated[dict[str, object], Meta(description="The arguments.")]
    cache_control: CacheControl = None
    caller: Annotated[object, Meta(description="Not used: only the model calls tools here.")] = None


class ThinkingBlock(msgspec.Struct, frozen=True, tag="thinking"):
    thinking: Annotated[str, Meta(description="The thinking from the answer.")]
    signature: Annotated[
        str | None,
        Meta(
            description="The signature from the answer; another server's signature hides the block."
        ),
    ] = None
    cache_control: CacheControl = None


class RedactedThinkingBlock(msgspec.Struct, frozen=True, tag="redacted_thinking"):
    data: Annotated[str, Meta(description="Left out: only the server that wrote it can read it.")]
    cache_control: CacheControl = None


class McpToolUseBlock(msgspec.Struct, frozen=True, tag="mcp_tool_use"):
    id: Annotated[str, Meta(min_length=1, description="The id from the answer.")]
    name: Annotated[str, Meta(min_length=1, description="The name of the tool.")]
    server_name: Annotated[str, Meta(description="The name of the MCP server.")]
    input: Annotated[dict[str, object], Meta(description="The arguments.")]
    cache_control: CacheControl = None


class McpToolResultBlock(msgspec.Struct, frozen=True, tag="mcp_tool_result"):
    tool_use_id: Annotated[str, Meta(description="The `id` of the mcp_tool_use block before it.")]
    content: Annotated[
        str | list[TextBlock] | None, Meta(description="The output of the tool.")
    ] = None
    is_error: Annotated[bool | None, Meta(description="The tool failed.")] = None
    cache_control: CacheControl = None


class ServerToolUseBlock(msgspec.Struct, frozen=True, tag="server_tool_use"):
    id: Annotated[str, Meta(min_length=1, description="The id from the answer.")]
    name: Annotated[str, Meta(min_length=1, description="web_search or web_fetch.")]
    input: Annotated[dict[str, object], Meta(description="The arguments.")]
    cache_control: CacheControl = None


class WebSearchHit(msgspec.Struct, frozen=True, tag="web_search_result"):
    url: Annotated[str, Meta(description="The address of the page.")]
    title: Annotated[str, Meta(description="The title of the page.")]
    encrypted_content: Annotated[
        str, Meta(description="From the answer; another server's hides the text of the page.")
    ] = ""
    page_age: Annotated[str | None, Meta(description="The age of the page; not used.")] = None


class WebSearchFault(msgspec.Struct, frozen=True, tag="web_search_tool_result_error"):
    error_code: Annotated[str, Meta(description="The code of the error, as in the answer.")]


class WebSearchResultBlock(msgspec.Struct, frozen=True, tag="web_search_tool_result"):
    tool_use_id: Annotated[
        str, Meta(description="The `id` of the server_tool_use block before it.")
    ]
    content: Annotated[
        list[WebSearchHit] | WebSearchFault, Meta(description="The pages, or the error.")
    ]
    cache_control: CacheControl = None


class WebFetchPage(msgspec.Struct, frozen=True, tag="web_fetch_result"):
    url: Annotated[str, Meta(description="The address of the page.")]
    content: Annotated[DocumentBlock, Meta(description="The text of the page.")]
    retrieved_at: Annotated[
        str | None, Meta(description="The time at which the page was fetched; not used.")
    ] = None


class WebFetchFault(msgspec.Struct, frozen=True, tag="web_fetch_tool_result_error"):
    error_code: Annotated[str, Meta(description="The code of the error, as in the answer.")]


class WebFetchResultBlock(msgspec.Struct, frozen=True, tag="web_fetch_tool_result"):
    tool_use_id: Annotated[
        str, Meta(description="The `id` of the server_tool_use block before it.")
    ]
    content: Annotated[WebFetchPage | WebFetchFault, Meta(description="The page, or the error.")]
    cache_control: CacheControl = None


UserBlock = TextBlock | ImageBlock | DocumentBlock | SearchResultBlock | ToolResultBlock
HostedBlock = (
    McpToolUseBlock
    | McpToolResultBlock
    | ServerToolUseBlock
    | WebSearchResultBlock
    | WebFetchResultBlock
)
OwnAssistantBlock = TextBlock | ToolUseBlock | ThinkingBlock | RedactedThinkingBlock
AssistantBlock = OwnAssistantBlock | HostedBlock


class ChangedTool(msgspec.Struct, frozen=True, tag="tool_reference"):
    name: Annotated[
        str, Meta(description="The name of a tool in `tools`, or of an earlier addition.")
    ]


class DefinedTool(msgspec.Struct, frozen=True, tag="tool_definition"):
    definition: Annotated[ClientTool, Meta(description="A tool, in the same form as in `tools`.")]


class ToolAdditionBlock(msgspec.Struct, frozen=True, tag="tool_addition"):
    tool: Annotated[
        ChangedTool | DefinedTool, Meta(description="The model may call this tool from now on.")
    ]
    cache_control: CacheControl = None


class ToolRemovalBlock(msgspec.Struct, frozen=True, tag="tool_removal"):
    tool: Annotated[ChangedTool, Meta(description="The model may not call this tool any more.")]
    cache_control: CacheControl = None


SystemBlock = TextBlock | ToolAdditionBlock | ToolRemovalBlock


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    content: Annotated[str | list[UserBlock], Meta(description="A text, or blocks.")]


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant"):
    content: Annotated[
        str | list[AssistantBlock], Meta(description="A text, or blocks from answers.")
    ]


class SystemMessage(msgspec.Struct, frozen=True, tag_field="role", tag="system"):
    content: Annotated[
        str | list[SystemBlock],
        Meta(description="Instructions in the middle of a chat, and changes of the tools."),
    ]


Message = UserMessage | AssistantMessage | SystemMessage
MessageList = Annotated[
    list[Message],
    Meta(
        min_length=1,
        description="The chat. Adjacent messages of one role are joined; a last assistant message "
        "is continued.",
    ),
]
SystemPrompt = Annotated[
    str | list[TextBlock] | None, Meta(description="Instructions before the chat.")
]
Role = Literal["user", "assistant", "system", "tool"]
