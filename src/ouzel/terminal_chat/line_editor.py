"""Reads input lines with history and completion; a message may have several lines."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent

Values = Callable[[], Sequence[str]]


class CommandCompleter(Completer):
    """Completes the names of commands and their arguments."""

    def __init__(self, values: dict[str, Values | None]) -> None:
        """`values` maps a command to the possible arguments; None if the argument is a path."""
        self._values = values
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, space, argument = text.partition(" ")
        if not space:
            for command in self._values:
                if command.startswith(name):
                    yield Completion(command, -len(name))
        elif name in self._values:
            yield from self._arguments(self._values[name], argument, complete_event)

    def _arguments(
        self, values: Values | None, argument: str, event: CompleteEvent
    ) -> Iterable[Completion]:
        if values is None:
            yield from self._paths.get_completions(Document(argument, len(argument)), event)
            return
        for value in values():
            if value.startswith(argument):
                yield Completion(value, -len(argument))


class LineEditor:
    def __init__(self, completer: Completer, history: History, typed: str = "") -> None:
        """`typed` is the text typed before the editor started; the first line begins with it."""
        self._session: PromptSession[str] = PromptSession(
            completer=completer,
            complete_while_typing=False,
            history=history,
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=lambda width, line_number, wrap_count: "… ".rjust(width),
        )
        self._questions: PromptSession[str] = PromptSession(history=InMemoryHistory())
        keys: list[KeyPress] = []
        Vt100Parser(keys.append).feed(typed)
        store_typeahead(self._session.app.input, keys)

    def read(self, *, default: str = "") -> str:
        """Reads a message, which begins with the text `default`.

        Raises KeyboardInterrupt for Ctrl-C, and EOFError for Ctrl-D on an empty line.
        """
        return self._session.prompt(FormattedText([("bold", "> ")]), default=default)

    def ask(self, question: str) -> str:
        """Asks a question and returns the answer in lower case; "" for Ctrl-C and Ctrl-D."""
        clear_typeahead(self._questions.app.input)
        try:
            return self._questions.prompt(question).strip().lower()
        except (KeyboardInterrupt, EOFError):
            return ""


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")  # Alt-Enter
    @keys.add("c-j")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _LenientHistory(FileHistory):
    """Stores lines in a file, and ignores errors such as a full disk."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def open_history(path: Path) -> tuple[History, str]:
    """Opens the history of earlier runs; also returns the reason if lines cannot be stored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.read_bytes()
    except OSError as error:
        return InMemoryHistory(), f"input lines are not stored: {path}: {error.strerror}"
    return _LenientHistory(str(path)), ""
