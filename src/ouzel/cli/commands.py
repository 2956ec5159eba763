"""Lists the commands of `ouzel`; the code of a command is imported when it runs."""

import importlib
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Command:
    """One command of `ouzel`.

    `function` names the function that runs the command, as `module:name`. It takes the arguments
    behind the command's name and returns the exit status; an OuzelError ends the program with its
    message. `parser` names the function that builds the parser of the command's own flags.
    """

    summary: str
    function: str
    parser: str = ""
    takes_serve_options: bool = True  # the command takes MODEL and all options of `ouzel serve`

    def run(self, arguments: Sequence[str]) -> int:
        function: Callable[[Sequence[str]], int] = _imported(self.function)
        return function(arguments)

    def own_parser(self) -> ArgumentParser | None:
        """Returns the parser of the command's own flags, or None if it has none."""
        if not self.parser:
            return None
        function: Callable[[], ArgumentParser] = _imported(self.parser)
        return function()


def _imported(name: str) -> Any:  # Any: a module's attribute can have any type
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


COMMANDS: Mapping[str, Command] = {
    "serve": Command(
        "Serve models over the OpenAI API; `ouzel serve -h` lists the common options, --help all.",
        "ouzel.serve.command:run",
    ),
    "chat": Command(
        "Chat with a model in the terminal, or print one answer.",
        "ouzel.terminal_chat.command:run",
        parser="ouzel.terminal_chat.flags:chat_parser",
    ),
    "launch": Command(
        "Start a coding agent (Claude Code, Codex, …) with settings for a running server.",
        "ouzel.launch.command:run",
        parser="ouzel.launch.flags:launch_parser",
        takes_serve_options=False,
    ),
    "inspect": Command(
        "Show how serve would load a model, and its memory, without loading it.",
        "ouzel.cli.inspect:run",
    ),
    "bench": Command(
        "Measure the speed of a server or a model.",
        "ouzel.bench.command:run",
        parser="ouzel.bench.flags:bench_parser",
    ),
    "batch": Command(
        "Run a file of requests as a batch, on a server or with a model here.",
        "ouzel.terminal_batch.command:run",
        parser="ouzel.terminal_batch.flags:batch_parser",
    ),
    "transcribe": Command(
        "Turn sound files into text or subtitles, on a server or with a model here.",
        "ouzel.terminal_transcribe.command:run",
        parser="ouzel.terminal_transcribe.flags:transcribe_parser",
    ),
    "run": Command(
        "Chat with a model: of the running server, or downloaded if needed and loaded here.",
        "ouzel.cli.run:run",
        parser="ouzel.cli.run:run_parser",
    ),
    "models": Command(
        "List the short names of well-known models, their sizes, and which fit this machine.",
        "ouzel.cli.models:run",
        parser="ouzel.cli.models:models_parser",
        takes_serve_options=False,
    ),
    "pull": Command(
        "Download a model from the Hugging Face hub; with --weights also compress its weights.",
        "ouzel.cli.pull:run",
        parser="ouzel.cli.pull:pull_parser",
        takes_serve_options=False,
    ),
    "quantize": Command(
        "Write a model as a calibrated four-bit checkpoint, which other programs load too.",
        "ouzel.cli.quantize:run",
        parser="ouzel.cli.quantize:quantize_parser",
        takes_serve_options=False,
    ),
    "list": Command(
        "List the models on this disk, whether serve supports them, and files made of them.",
        "ouzel.cli.list:run",
        parser="ouzel.cli.list:list_parser",
        takes_serve_options=False,
    ),
    "rm": Command(
        "Remove models from the Hugging Face cache, and files that Ouzel made of models.",
        "ouzel.cli.rm:run",
        parser="ouzel.cli.rm:rm_parser",
        takes_serve_options=False,
    ),
    "doctor": Command(
        "Report this machine's hardware, its speed, and the models that fit.",
        "ouzel.cli.doctor:run",
        parser="ouzel.cli.doctor:doctor_parser",
        takes_serve_options=False,
    ),
    "completion": Command(
        "Print the completion script of bash, zsh or fish.",
        "ouzel.cli.completion.command:run",
        parser="ouzel.cli.completion.command:completion_parser",
        takes_serve_options=False,
    ),
}
