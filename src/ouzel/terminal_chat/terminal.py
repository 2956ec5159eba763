"""Shows messages to the user and asks questions."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ouzel.terminal.harmless import harmless, harmless_line
from ouzel.terminal_chat.keyboard import Keyboard

if TYPE_CHECKING:
    from ouzel.terminal_chat.line_editor import LineEditor

_MAX_RESULT = 500  # shown characters of a tool's result
_MAX_ARGUMENTS = 300  # shown characters of the arguments of a call that needs no approval


class Terminal:
    def __init__(
        self, console: Console, editor: "LineEditor | None" = None, keyboard: Keyboard | None = None
    ) -> None:
        """Without an editor `ask` returns ""; the keyboard serves to drop keys before questions."""
        self.console = console
        self._editor = editor
        self._keyboard = keyboard

    def say(self, text: str) -> None:
        self._print(text, "dim")

    def complain(self, text: str) -> None:
        self._print(text, "red")

    def ask(self, question: str) -> str:
        """Returns the user's answer in lower case; "" without an answer."""
        if self._editor is None:
            return ""
        if self._keyboard is not None:
            self._keyboard.forget()
        return self._editor.ask(question)

    def lent(self) -> AbstractContextManager[None]:
        """Restores the keyboard while the block runs, for a tool that may read it."""
        return nullcontext() if self._keyboard is None else self._keyboard.ordinary()

    def show_pairs(self, pairs: Mapping[str, str]) -> None:
        """Shows keys and values in two columns."""
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column()
        for left, right in pairs.items():
            table.add_row(Text(left), Text(right, "dim"))
        self.console.print(table)

    def show_call(self, name: str, arguments: str, *, is_whole: bool = False) -> None:
        """Shows a call; a user who must allow the call reads all of the arguments."""
        text = arguments if is_whole else _shorten(arguments, _MAX_ARGUMENTS)
        self.console.print(Text(f"⚙ {harmless_line(name)}({harmless_line(text)})", "cyan"))

    def show_result(self, result: str) -> None:
        """Shows the beginning of a tool's result; the model gets the whole result."""
        self._print(_shorten(result, _MAX_RESULT), "dim")

    def _print(self, text: str, style: str) -> None:
        self.console.print(Text(harmless(text), style))


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def make_terminal(editor: "LineEditor | None" = None, keyboard: Keyboard | None = None) -> Terminal:
    """Makes a terminal that prints texts as they are, without rich's markup."""
    return Terminal(Console(highlight=False, emoji=False, markup=False), editor, keyboard)
