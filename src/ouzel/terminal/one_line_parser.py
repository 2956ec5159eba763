"""Parses arguments, and reports an error in one line, like the rest of the command."""

import argparse
from typing import NoReturn

from ouzel.terminal.suggestion import did_you_mean

_UNKNOWN = "unrecognized arguments: "


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if message.startswith(_UNKNOWN):
            message = self._unknown(message.removeprefix(_UNKNOWN))
        self.exit(2, f"ouzel: {message.removeprefix('argument ')}\n")

    def _unknown(self, arguments: str) -> str:
        """Returns the error for unknown arguments, with the flag that may be meant."""
        flags = [
            argument.partition("=")[0] for argument in arguments.split() if argument.startswith("-")
        ]
        hint = f"; {self.prog} --help lists all options"
        if not flags:
            return f"unexpected argument {arguments}{hint}"
        known = [
            flag for action in self._actions for flag in action.option_strings
        ]  # argparse has no public list of them
        return f"unknown option {flags[0]}{did_you_mean(flags[:1], known) or hint}"
