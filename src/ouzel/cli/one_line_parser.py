"""This argument parser complains in one line, as the rest of the command does."""

import argparse
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ouzel: {message.removeprefix('argument ')}\n")
