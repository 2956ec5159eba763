"""Granite 4 Vision reads tiles like LLaVA-NeXT, with fewer features than patches."""

import re
from fractions import Fraction

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.llava_next import make_processor
from ouzel.prompts.vision.settings import ProcessorFiles

_KEY = "downsample_rate"
_RATE = re.compile(r"[0-9]{1,4}/[1-9][0-9]{0,3}")


def load(files: ProcessorFiles) -> ImageProcessor:
    """Loads the processor; the model's rate counts, which the processor's files may repeat."""
    rate = _read_rate(files.config.get(_KEY), f"{files.directory / 'config.json'}")
    if _KEY in files.processor:
        source = f"{files.directory / 'processor_config.json'}"
        if _read_rate(files.processor[_KEY], source) != rate:
            raise ModelLoadError(
                f"{source}: {_KEY} must be {rate} as in config.json, found "
                f"{brief(files.processor[_KEY])}"
            )
    return make_processor(files, rate)


def _read_rate(value: object, source: str) -> Fraction:
    is_rate = isinstance(value, str) and _RATE.fullmatch(value)
    rate = Fraction(str(value)) if is_rate else Fraction(0)
    if not 0 < rate <= 1:
        raise ModelLoadError(
            f'{source}: {_KEY} must be a fraction up to 1, such as "4/8", found {brief(value)}'
        )
    return rate
