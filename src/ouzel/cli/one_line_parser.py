"""An argument parser whose complaints are one line, as all others of the command."""

import argparse
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ouzel: {message.removeprefix('argument ')}\n")
