"""Chats with pictures whose prompts transformers has computed (training/golden/make_seeing.py)."""

import re

Size = tuple[int, int]  # width and height of a picture
Parts = tuple[str | Size, ...]  # texts and pictures of one message

GOLDEN_CHATS: dict[str, Parts] = {
    "lying": ((90, 40), "What is that?"),
    "standing": ("Look: ", (30, 75), " What is that?"),
    "three": ("First", (60, 45), " then ", (20, 50), "\nand below\n", (57, 44), "Which is it?"),
}
# The last positions of a prompt, whose logprobs are stored. These positions attend to all pictures.
NUM_LAST = 8


def shortened(text: str, token: str) -> str:
    """Replaces each run of the token by the token and the length of the run."""
    return re.sub(
        f"(?:{re.escape(token)})+", lambda run: f"{token}*{len(run.group()) // len(token)}", text
    )
