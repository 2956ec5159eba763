"""Conversations become token ids as the server makes them, and pictures the pixels that it gives to the encoder."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tokenizers import Tokenizer

from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.loader import load_image_processor
from training.demo_vision.exchanges import Conversation

ASSISTANT = re.compile(r"(?<=<\|im_start\|>assistant\n).*?<\|im_end\|>", re.DOTALL)

Grid = tuple[int, int]  # rows and columns of tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """One conversation: which tokens are learned, where each is, and which rows of features stand for it."""

    token_ids: NDArray[np.uint16]
    learned: NDArray[np.bool_]
    positions: NDArray[np.int16]  # [tokens, 3]
    cells: NDArray[np.int16]  # of all pictures, one after the other; -1 for text


class Renderer:
    def __init__(self, directory: Path) -> None:
        template, processor = ChatTemplate.load(directory), load_image_processor(directory)
        assert template is not None and processor is not None, (
            f"{directory} is no checkpoint that sees"
        )
        self.template = template
        self.processor: ImageProcessor = processor
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.image_id = self.token_id(processor.feature_token)
        self.vision_end_id = self.token_id("<|vision_end|>")

    def token_id(self, token: str) -> int:
        token_id = self.tokenizer.token_to_id(token)
        assert token_id is not None, f"{token} is no token"
        return token_id

    def grid(self, image: Image.Image) -> Grid:
        grid = self.processor.layout(*image.size, "auto").position_grid
        assert grid is not None
        return grid[1:]

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        """Returns [height, width, 3]."""
        tiles = self.processor.tiles(image, "auto")
        return tiles.reshape(tiles.shape[1:])

    def prompt(self, conversation: Conversation, grids: list[Grid]) -> list[int]:
        """Returns the token ids of all but the last answer."""
        text = self.template.render(conversation.messages[:-1])
        return self.tokenizer.encode(self._with_pictures(text, grids), add_special_tokens=False).ids

    def _with_pictures(self, text: str, grids: list[Grid]) -> str:
        """Writes each picture's placeholder as often as it has tokens."""
        first, *others = text.split(self.processor.placeholder)
        assert len(others) == len(grids)
        return first + "".join(
            self.processor.feature_token * (rows * columns) + other
            for (rows, columns), other in zip(grids, others, strict=True)
        )

    def tokens(self, conversation: Conversation, grids: list[Grid]) -> Tokens:
        token_ids: list[int] = []
        learned: list[bool] = []
        text = self.template.render(
            conversation.messages, variables={"add_generation_prompt": False}
        )
        for piece, is_answer in _pieces(self._with_pictures(text, grids)):
            ids = self.tokenizer.encode(piece, add_special_tokens=False).ids
            token_ids += ids
            learned += [is_answer] * len(ids)
        ids_array = np.array(token_ids)
        cells = np.full(len(token_ids), -1, np.int16)
        cells[ids_array == self.image_id] = np.arange((ids_array == self.image_id).sum())
        return Tokens(
            ids_array.astype(np.uint16),
            np.array(learned),
            positions(ids_array == self.image_id, grids),
            cells,
        )


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Cuts a text into what the assistant says, with the token that ends it, and the rest."""
    position = 0
    for match in ASSISTANT.finditer(text):
        yield text[position : match.start()], False
        yield match[0], True
        position = match.end()


def positions(is_image: NDArray[np.bool_], grids: list[Grid]) -> NDArray[np.int16]:
    """Returns [tokens, 3]: time, row and column. A text counts on, behind the largest position of a picture."""
    found = np.zeros((len(is_image), 3), np.int16)
    pending, place, number = iter(grids), 0, 0
    while number < len(is_image):
        if not is_image[number]:
            found[number] = place
            place, number = place + 1, number + 1
            continue
        rows, columns = next(pending)
        found[number : number + rows * columns] = (
            place + np.indices((1, rows, columns)).reshape(3, -1).T
        )
        place, number = place + max(rows, columns), number + rows * columns
    return found
