"""What the README names is there."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_two_commands_are_there() -> None:
    commands = [
        line
        for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
        for line in block.splitlines()
    ]

    assert "pip install uv && uv run --no-dev ouzel serve" in commands
    assert "uv run pytest" in commands
