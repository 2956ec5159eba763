"""The commands of `ouzel` are one table. What runs a command is imported when it is chosen."""

import importlib
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Command:
    """`function` is `module:name` of what takes the arguments behind the command's name and returns the exit status.

    It may raise OuzelError, whose message ends the program. `parser` is such a name, too: of a function that returns
    the parser of the command's own flags.
    """

    summary: str
    function: str
    parser: str = ""
    takes_serve_options: bool = True  # MODEL and all options of `ouzel serve`

    def run(self, arguments: Sequence[str]) -> int:
        function: Callable[[Sequence[str]], int] = _imported(self.function)
        return function(arguments)

    def own_parser(self) -> ArgumentParser | None:
        """Returns None where the command has no flags of its own."""
        if not self.parser:
            return None
        function: Callable[[], ArgumentParser] = _imported(self.parser)
        return function()


def _imported(name: str) -> Any:  # Any: whatever has that name
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


COMMANDS: Mapping[str, Command] = {
    "serve": Command(
        "Serve a model over the OpenAI API; `ouzel serve -h` lists the common options, --help all.",
        "ouzel.serve.command:run",
    ),
    "chat": Command(
        "Talk with a model in the terminal, or print one answer; `ouzel chat -h` lists the options.",
        "ouzel.terminal_chat.command:run",
        parser="ouzel.terminal_chat.flags:chat_parser",
    ),
    "inspect": Command(
        "Print what would be loaded of a model, and what it would take; with the options of serve.",
        "ouzel.cli.inspect:run",
    ),
    "bench": Command(
        "Measure how fast a server or a model answers; `ouzel bench -h` lists its options.",
        "ouzel.bench.command:run",
        parser="ouzel.bench.flags:bench_parser",
    ),
    "pull": Command(
        "Fetch a model of the Hugging Face hub, and make its compressed weights with --weights.",
        "ouzel.cli.pull:run",
        parser="ouzel.cli.pull:pull_parser",
        takes_serve_options=False,
    ),
    "quantize": Command(
        "Write a model as a four-bit checkpoint that others load, too, calibrated on a text.",
        "ouzel.cli.quantize:run",
        parser="ouzel.cli.quantize:quantize_parser",
        takes_serve_options=False,
    ),
    "list": Command(
        "List the models on this disk, what serve would make of them, and what is kept of them.",
        "ouzel.cli.list:run",
        parser="ouzel.cli.list:list_parser",
        takes_serve_options=False,
    ),
    "rm": Command(
        "Remove models of the Hugging Face cache and what is kept of them.",
        "ouzel.cli.rm:run",
        parser="ouzel.cli.rm:rm_parser",
        takes_serve_options=False,
    ),
    "doctor": Command(
        "Tell what this machine has, what runs fast on it and which models fit.",
        "ouzel.cli.doctor:run",
        parser="ouzel.cli.doctor:doctor_parser",
        takes_serve_options=False,
    ),
    "completion": Command(
        "Print the script by which bash, zsh or fish complete this command line.",
        "ouzel.cli.completion.command:run",
        parser="ouzel.cli.completion.command:completion_parser",
        takes_serve_options=False,
    ),
}
