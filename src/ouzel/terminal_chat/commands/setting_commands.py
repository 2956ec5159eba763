"""Runs the commands that change fields of requests; the server checks a value before it is set."""

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat import Chat
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.chat_setup import choose_model
from ouzel.terminal_chat.settings import check_name, read_setting, shown

OFF = "off"


def system(chat: Chat, argument: str) -> None:
    if argument:
        chat.conversation.system = "" if argument == OFF else argument
    chat.terminal.say(chat.conversation.system or "there is no system message")


def set_field(chat: Chat, argument: str) -> None:
    """Sets a field, or lists the fields that are set.

    Raises ChatError for an unknown field, and ApiFailure for a value that the server refuses.
    """
    if not argument:
        chat.terminal.say(shown(chat.settings) or "no field is set: the server's defaults apply")
        return
    name, value = read_setting(argument)
    check_name(name, chat.api.field_names())
    is_checked = chat.check({name: value})
    chat.settings[name] = value
    unchecked = "" if is_checked else "; this server checks the value with the next request"
    chat.terminal.say(shown({name: value}) + unchecked)


def unset_field(chat: Chat, argument: str) -> None:
    if argument not in chat.settings:
        names = ", ".join(chat.settings) or "nothing"
        raise ChatError(
            f"/unset: must be followed by a field that is set ({names}), given "
            f"{harmless_line(argument)!r}"
        )
    del chat.settings[argument]
    chat.terminal.say(f"{argument} has the server's default again")


def model(chat: Chat, argument: str) -> None:
    """Chooses a model, or lists the models. Raises ApiFailure and ChatError."""
    if argument:
        chat.model = choose_model(chat.api, argument)
        chat.terminal.say(f"the model is now {chat.model}")
    else:
        names = chat.api.models() or [chat.model]
        chat.terminal.say(
            "\n".join(f"{'*' if name == chat.model else ' '} {name}" for name in names)
        )


def markdown(chat: Chat, argument: str) -> None:
    if argument not in ("", "on", OFF):
        raise ChatError(
            f"/markdown: must be followed by on or off, given {harmless_line(argument)!r}"
        )
    if argument:
        chat.is_markdown = argument == "on"
    chat.terminal.say(
        "Markdown is drawn" if chat.is_markdown else "answers are shown as they are written"
    )
