"""The commands of `ouzel` are one table. What runs a command is imported when it is chosen."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """`function` is `module:name` of what takes the arguments behind the command's name and returns the exit status.

    It may raise OuzelError, whose message ends the program.
    """

    summary: str
    function: str

    def run(self, arguments: Sequence[str]) -> int:
        module, _, name = self.function.partition(":")
        function: Callable[[Sequence[str]], int] = getattr(importlib.import_module(module), name)
        return function(arguments)


COMMANDS: Mapping[str, Command] = {
    "serve": Command(
        "Serve a model over the OpenAI API; `ouzel serve -h` lists the common options, --help all.",
        "ouzel.cli.serve_command:run",
    ),
    "chat": Command(
        "Talk with a model in the terminal, or print one answer; `ouzel chat -h` lists the options.",
        "ouzel.cli.chat:run",
    ),
    "inspect": Command(
        "Print what would be loaded of a model, and what it would take; with the options of serve.",
        "ouzel.cli.inspect:run",
    ),
}
