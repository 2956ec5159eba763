"""Defines chats with videos whose prompts transformers has computed.

training/golden/make_seeing_videos.py wrote the results of transformers.
"""

from dataclasses import dataclass

from PIL import Image

from tests.prompts.vision.pictures import picture


@dataclass(frozen=True)
class Film:
    """A video whose frames need no resizing, because resized pixels differ from the references'."""

    num_frames: int
    size: tuple[int, int]  # width and height
    fps: float
    is_file: bool  # False: requests send the frames one by one

    def frames(self) -> list[Image.Image]:
        whole = picture(self.size[0] + 3 * self.num_frames, self.size[1])
        lefts = range(0, 3 * self.num_frames, 3)
        return [whole.crop((left, 0, left + self.size[0], self.size[1])) for left in lefts]


Parts = tuple[str | tuple[int, int] | Film, ...]  # texts, sizes of pictures, and videos

FAMILIES_WITH_VIDEOS = (
    "internvl",
    "internvl-norms",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_5",
    "qwen3_vl",
    "qwen3_vl_moe",
)
FEATURE_TOKENS = ("<|image_pad|>", "<|video_pad|>", "<IMG_CONTEXT>")
VIDEO_CHATS: dict[str, Parts] = {
    "frames": ("Look: ", Film(5, (24, 32), 2.0, is_file=False), " What happens?"),
    "file": (Film(30, (40, 16), 10.0, is_file=True), "What happens?"),
    "several": (
        *("First", (60, 45), Film(4, (32, 16), 0.5, is_file=False), "then"),
        *(Film(12, (16, 32), 5.0, is_file=True), (20, 50), "Which is it?"),
    ),
}
NUM_LAST = 8  # the last positions of a prompt, whose logprobs are stored
NUM_GREEDY = 8
