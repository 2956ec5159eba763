"""Chats with pictures of which transformers has said what they come to (training/golden/make_seeing.py)."""

import re

Size = tuple[int, int]  # of a picture, width and height
Parts = tuple[str | Size, ...]  # of one message, texts and pictures

GOLDEN_CHATS: dict[str, Parts] = {
    "lying": ((90, 40), "What is that?"),
    "standing": ("Look: ", (30, 75), " What is that?"),
    "three": ("First", (60, 45), " then ", (20, 50), "\nand below\n", (57, 44), "Which is it?"),
}
NUM_LAST = 8  # positions of the prompt whose logprobs are kept: all of them see all pictures


def shortened(text: str, token: str) -> str:
    """Writes a run of the token with the number of times."""
    return re.sub(
        f"(?:{re.escape(token)})+", lambda run: f"{token}*{len(run.group()) // len(token)}", text
    )
