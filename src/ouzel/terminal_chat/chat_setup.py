"""Reads the options of a run that its requests need: the model, files and fields."""

from collections.abc import Mapping
from dataclasses import dataclass

from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.schema_file import read_schema
from ouzel.terminal_chat.commands.tool_file import load_tools
from ouzel.terminal_chat.commands.tool_schema import Tool
from ouzel.terminal_chat.flags import ChatFlags
from ouzel.terminal_chat.picture import Picture, read_picture
from ouzel.terminal_chat.settings import Settings, check_name, read_setting


@dataclass(frozen=True, slots=True)
class ChatSetup:
    """The options of a run, checked and read."""

    model: str
    system: str  # text of the system message; "" for none
    pictures: list[Picture]  # images for the first message
    tools: Mapping[str, Tool]
    response_format: dict[str, object] | None
    settings: Settings


def read_setup(flags: ChatFlags, api: ChatApi) -> ChatSetup:
    """Reads the options.

    Raises InvalidOption for wrong files and names, and ApiFailure for refusals of the server.
    """
    try:
        return ChatSetup(
            model=choose_model(api, flags.model_name),
            system=flags.system,
            pictures=[read_picture(path) for path in flags.image],
            tools=load_tools(flags.tools) if flags.tools else {},
            response_format=read_schema(flags.schema) if flags.schema else None,
            settings=_read_settings(flags, api),
        )
    except ChatError as error:
        raise InvalidOption(str(error)) from error


def _read_settings(flags: ChatFlags, api: ChatApi) -> Settings:
    settings: Settings = {}
    for setting in flags.set:
        name, value = read_setting(setting)
        check_name(name, api.field_names())
        settings[name] = value
    return settings


def build_fields(
    model: str,
    settings: Settings,
    tools: Mapping[str, Tool],
    response_format: dict[str, object] | None,
) -> dict[str, object]:
    """Returns the fields of a request, except its messages."""
    fields: dict[str, object] = {"model": model, **settings}
    if tools:
        fields["tools"] = [tool.on_the_wire() for tool in tools.values()]
    if response_format is not None:
        fields["response_format"] = response_format
    return fields


def choose_model(api: ChatApi, name: str) -> str:
    """Returns `name` if the server has this model, or its first model if `name` is empty.

    Raises ApiFailure, or ChatError if the server does not have the model.
    """
    models = api.models()
    if models is None:
        if not name:
            raise ChatError(
                "the model must be named (--model NAME): the server does not list its models"
            )
        return name
    if name and name not in models:
        raise ChatError(f"the model must be one of {', '.join(models) or 'none'}, given {name!r}")
    if not models:
        raise ChatError("the server serves no model")
    return name or models[0]
