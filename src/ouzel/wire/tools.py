"""Defines the request fields for tools, in the forms of chats and of the Responses API."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Protocol

import msgspec
from msgspec import Meta

MAX_TOOLS = 1024

FunctionName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9_.:/-]+$",
        description="The name by which the model calls the function.",
    ),
]


class FunctionDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    name: FunctionName
    description: Annotated[
        str | None, Meta(description="Tells the model when to call the function.")
    ] = None
    parameters: Annotated[
        dict[str, object] | None, Meta(description="JSON schema of the arguments.")
    ] = None
    strict: Annotated[bool | None, Meta(description="The arguments match the schema exactly.")] = (
        None
    )


class AnyText(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    pass


class GrammarText(msgspec.Struct, frozen=True):
    syntax: Annotated[Literal["lark", "regex"], Meta(description="The syntax of the grammar.")]
    definition: Annotated[str, Meta(description="The grammar of the whole text.")]


class TextOfGrammar(msgspec.Struct, frozen=True, tag_field="type", tag="grammar"):
    """A text grammar. The Responses API has the fields of `grammar` beside `type`."""

    grammar: GrammarText | None = None
    syntax: Literal["lark", "regex"] | None = None
    definition: str | None = None


CustomFormat = Annotated[
    AnyText | TextOfGrammar | None, Meta(description="The form of the text; without it, any text.")
]


class CustomDefinition(msgspec.Struct, frozen=True):
    """A custom tool, which the model calls with a text instead of arguments."""

    name: FunctionName
    description: Annotated[
        str | None, Meta(description="Tells the model when to call the tool.")
    ] = None
    format: CustomFormat = None


class Tool(msgspec.Struct, frozen=True):
    """A tool, in OpenAI's chat form or with all fields beside `type` (Responses API)."""

    type: Annotated[
        str,
        Meta(
            description="function or custom; other types are left out or refused (--unknown-tools)."
        ),
    ]
    function: FunctionDefinition | None = None
    custom: CustomDefinition | None = None
    name: FunctionName | None = None
    description: str | None = None
    parameters: dict[str, object] | None = None
    strict: bool | None = None
    format: CustomFormat = None

    known_types: ClassVar[tuple[str, ...]] = ("function", "custom")

    @property
    def is_known(self) -> bool:
        return self.type in self.known_types


class ListedTool(Tool, frozen=True):
    """A tool of the Responses API, where a `namespace` has tools of its own."""

    tools: list[Tool] | None = None

    known_types: ClassVar[tuple[str, ...]] = ("function", "custom", "namespace")


class NamedFunction(msgspec.Struct, frozen=True):
    name: FunctionName


class NamedTool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    function: NamedFunction | None = None
    name: FunctionName | None = None
    namespace: str | None = None


class NamedCustomTool(msgspec.Struct, frozen=True, tag_field="type", tag="custom"):
    custom: NamedFunction | None = None
    name: FunctionName | None = None
    namespace: str | None = None


class NamedHostedTool(msgspec.Struct, frozen=True, tag_field="type"):
    """The choice of a tool that the server runs; the tag is the type of the tool."""


class NamedMcp(NamedHostedTool, frozen=True, tag="mcp"):
    server_label: Annotated[str, Meta(description="The server_label of a tool of the request.")]
    name: Annotated[
        str | None, Meta(description="One tool of the server; null for any of its tools.")
    ] = None


class NamedWebSearch(NamedHostedTool, frozen=True, tag="web_search"):
    pass


class NamedDatedWebSearch(NamedHostedTool, frozen=True, tag="web_search_2025_08_26"):
    pass


class NamedWebSearchPreview(NamedHostedTool, frozen=True, tag="web_search_preview"):
    pass


class NamedDatedWebSearchPreview(NamedHostedTool, frozen=True, tag="web_search_preview_2025_03_11"):
    pass


class NamedFileSearch(NamedHostedTool, frozen=True, tag="file_search"):
    pass


class NamedCodeInterpreter(NamedHostedTool, frozen=True, tag="code_interpreter"):
    pass


class NamedShell(NamedHostedTool, frozen=True, tag="shell"):
    pass


AnyNamedHostedTool = (
    NamedMcp
    | NamedWebSearch
    | NamedDatedWebSearch
    | NamedWebSearchPreview
    | NamedDatedWebSearchPreview
    | NamedFileSearch
    | NamedCodeInterpreter
    | NamedShell
)


AllowedMode = Annotated[
    Literal["auto", "required"],
    Meta(description="auto: the model may call a tool; required: it must."),
]
AllowedNames = Annotated[
    list[NamedTool | NamedCustomTool | AnyNamedHostedTool],
    Meta(min_length=1, description="The tools that the model may call."),
]


class AllowedToolList(msgspec.Struct, frozen=True):
    mode: AllowedMode
    tools: AllowedNames


class AllowedTools(msgspec.Struct, frozen=True, tag_field="type", tag="allowed_tools"):
    """The choice of allowed tools.

    The Responses API has the fields of the list beside `type`.
    """

    allowed_tools: Annotated[AllowedToolList | None, Meta(description="Some of the tools.")] = None
    mode: AllowedMode | None = None
    tools: AllowedNames | None = None


Tools = Annotated[
    list[Tool], Meta(max_length=MAX_TOOLS, description="Tools that the model may call.")
]
AnyNamedTool = NamedTool | NamedCustomTool | AnyNamedHostedTool
Choice = Literal["none", "auto", "required"] | AnyNamedTool | AllowedTools
ToolChoice = Annotated[
    Choice | None,
    Meta(
        description="Whether the model may or must call a tool, or the tool it must call; "
        "auto if the request has tools."
    ),
]
ParallelToolCalls = Annotated[
    bool | None, Meta(description="Several calls in one answer; true when not given.")
]
GuidesTools = Annotated[
    bool | None,
    Meta(description="The arguments of every call match their schema, as for strict functions."),
]
Functions = Annotated[
    list[FunctionDefinition],
    Meta(max_length=MAX_TOOLS, description="The old name of tools; answers use it too."),
]
FunctionCall = Annotated[
    Literal["none", "auto"] | NamedFunction | None,
    Meta(description="The old name of tool_choice; belongs to functions."),
]


class ToolFields(Protocol):
    """Declares the tool fields of all bodies; a protocol, because a struct has one base."""

    @property
    def tools(self) -> Sequence[Tool] | None: ...

    @property
    def tool_choice(self) -> Choice | None: ...

    @property
    def parallel_tool_calls(self) -> bool | None: ...

    @property
    def enable_tool_guided_generation(self) -> bool | None: ...

    @property
    def functions(self) -> Sequence[FunctionDefinition] | None: ...

    @property
    def function_call(self) -> Literal["none", "auto"] | NamedFunction | None: ...
