"""The request fields about tools, as clients write them in chats and in the Responses API."""

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
        description="What the model calls it.",
    ),
]


class FunctionDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    name: FunctionName
    description: Annotated[str | None, Meta(description="When to call it, for the model.")] = None
    parameters: Annotated[
        dict[str, object] | None, Meta(description="JSON schema of the arguments.")
    ] = None
    strict: Annotated[bool | None, Meta(description="The arguments obey the schema exactly.")] = (
        None
    )


class AnyText(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    pass


class GrammarText(msgspec.Struct, frozen=True):
    syntax: Annotated[Literal["lark", "regex"], Meta(description="How the grammar is written.")]
    definition: Annotated[str, Meta(description="The grammar, which the whole text obeys.")]


class TextOfGrammar(msgspec.Struct, frozen=True, tag_field="type", tag="grammar"):
    """In the form of the Responses API the grammar's fields stand beside `type`."""

    grammar: GrammarText | None = None
    syntax: Literal["lark", "regex"] | None = None
    definition: str | None = None


CustomFormat = Annotated[
    AnyText | TextOfGrammar | None, Meta(description="What the text may be; any text without it.")
]


class CustomDefinition(msgspec.Struct, frozen=True):
    """The model calls this tool with a text instead of arguments."""

    name: FunctionName
    description: Annotated[str | None, Meta(description="When to call it, for the model.")] = None
    format: CustomFormat = None


class Tool(msgspec.Struct, frozen=True):
    """The form is OpenAI's; that of the Responses API, with the tool's fields beside `type`, is read as well."""

    type: Annotated[
        str,
        Meta(description="function or custom; others are left out or refused (--unknown-tools)."),
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
    """In the Responses API a `namespace` has tools of its own."""

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


AllowedMode = Annotated[
    Literal["auto", "required"], Meta(description="Whether one of them must be called.")
]
AllowedNames = Annotated[
    list[NamedTool | NamedCustomTool],
    Meta(min_length=1, description="Those of the tools that may be called."),
]


class AllowedToolList(msgspec.Struct, frozen=True):
    mode: AllowedMode
    tools: AllowedNames


class AllowedTools(msgspec.Struct, frozen=True, tag_field="type", tag="allowed_tools"):
    """As `Tool`: in the form of the Responses API the list's fields stand beside `type`."""

    allowed_tools: Annotated[AllowedToolList | None, Meta(description="Some of the tools.")] = None
    mode: AllowedMode | None = None
    tools: AllowedNames | None = None


Tools = Annotated[
    list[Tool], Meta(max_length=MAX_TOOLS, description="Tools that the model may call.")
]
Choice = Literal["none", "auto", "required"] | NamedTool | NamedCustomTool | AllowedTools
ToolChoice = Annotated[
    Choice | None,
    Meta(
        description="Whether the model may, or must, call a tool, or which; auto when there are tools."
    ),
]
ParallelToolCalls = Annotated[
    bool | None, Meta(description="Several calls in one answer; true when not given.")
]
GuidesTools = Annotated[
    bool | None,
    Meta(description="The arguments of every call obey their schema, as for strict functions."),
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
    """The bodies with tools have these in common; this is a protocol because a struct has one base only."""

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
