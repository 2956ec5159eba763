"""Finds the reasons why an engine cannot run a request."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.state.adapters import Adapter
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput, SoundInput


@dataclass(frozen=True, slots=True)
class Fault:
    message: str
    param: str | None = None  # the request field at fault, where a client may have caused it


def find_faults(
    request: EngineRequest, adapter: Adapter | None, info: EngineInfo, blocks: BlockManager
) -> Iterator[Fault]:
    """Yields the reasons why the request cannot run.

    `adapter` is the loaded adapter of that name.
    """
    if request.adapter and adapter is None:
        yield Fault(f"adapter {request.adapter!r} is not loaded", "model")
    if info.attends_to_whole_prompts and request.params.num_prompt_logprobs is not None:
        yield Fault(
            "prompt_logprobs must not be given, nor echo with logprobs: the tokens of this model's "
            "prompts see each other, so none is predicted",
            "prompt_logprobs",
        )
    yield from map(Fault, _faults(request, info, blocks))


def _faults(request: EngineRequest, info: EngineInfo, blocks: BlockManager) -> Iterator[str]:
    """Checks the request itself.

    The server does so earlier; programs that embed the engine may not.
    """
    token_ids = request.prompt_token_ids
    yield from _pooling_faults(request, info)
    if request.n < 1:
        yield f"n must be >= 1, given {request.n}"
    if not token_ids:
        yield "the prompt is empty"
    if len(token_ids) >= info.max_model_len:
        yield f"the prompt has {len(token_ids)} tokens, max_model_len is {info.max_model_len}"
    for name, ids in _token_ids_in(request).items():
        if any(not 0 <= token_id < info.vocab_size for token_id in ids):
            yield f"{name} must be token ids in [0, {info.vocab_size})"
    yield from _audio_faults(request, info)
    if request.images:
        yield from _image_faults(request.images, len(token_ids), info)
    if not all(request.params.bad_words):
        yield "bad_words must have at least one token each"
    if request.reasoning_budget is not None and not request.reasoning_budget.end_token_ids:
        yield "the end mark of the reasoning must have at least one token"
    if request.reasoning_budget is not None and request.params.beam_search is not None:
        yield "a beam search cannot have a reasoning budget"
    if request.params.beam_search is not None:
        yield from _beam_search_faults(request, request.params.beam_search, info, blocks)


def _audio_faults(request: EngineRequest, info: EngineInfo) -> Iterator[str]:
    audio, shape = request.audio, info.audio
    if shape is None:
        if audio is not None or request.transcript_rules or request.num_aligned_frames:
            yield "this model reads no sound"
        return
    if audio is None:
        yield "this model transcribes sound, and the request has none"
    elif audio.shape != (shape.num_mel_bins, shape.num_frames):
        yield (
            f"the sound must have {shape.num_mel_bins} mel bins and {shape.num_frames} frames, "
            f"given {audio.shape}"
        )
    elif len(audio.features) != 4 * prod(audio.shape):
        yield f"the sound must have 4 bytes for each number, given {len(audio.features)} in all"
    if request.num_aligned_frames and not (shape.can_align and request.params.max_tokens == 0):
        yield "an alignment needs a model with alignment heads, and max_tokens 0"
    if not 0 <= request.num_aligned_frames <= shape.num_encoder_frames:
        yield (
            f"num_aligned_frames must be from 0 to {shape.num_encoder_frames}, given "
            f"{request.num_aligned_frames}"
        )


def _pooling_faults(request: EngineRequest, info: EngineInfo) -> Iterator[str]:
    pooling = request.pooling
    if pooling is None:
        if info.vector_size:
            yield "this model computes vectors and generates no tokens"
        return
    if not (info.vector_size or pooling.token_ids):
        yield "this model generates tokens and computes no vectors"
    if request.n != 1 or len(pooling.text_lens) > 1 or request.params.max_tokens != 0:
        yield "a pooling request must have one text, n 1 and max_tokens 0"
    if pooling.form != "text" or pooling.visible_lens:
        yield "this model makes only vectors of whole texts"
    if any(not 0 <= token_id < info.vocab_size for token_id in pooling.token_ids):
        yield f"the tokens of a score must be token ids in [0, {info.vocab_size})"


def _image_faults(
    images: Sequence[MediaInput], num_prompt_tokens: int, info: EngineInfo
) -> Iterator[str]:
    yield from _kind_faults(images, info)
    end = 0
    for number, image in enumerate(images):
        yield from _place_faults(image, number, end)
        end = max((begin + length for begin, length in image.runs), default=end)
        yield from _content_faults(image, number)
    seen = [image for image in images if isinstance(image, ImageInput)]
    if len({image.position_grid is None for image in seen}) > 1:
        yield "either all images must have a grid of positions, or none"
    for number, (before, image) in enumerate(zip((None, *images), images, strict=False)):
        if image.time_shift is not None and not _goes_on(before, image):
            yield (
                f"image {number}, a frame of a video, must directly follow a frame of its own size"
            )
    if end > num_prompt_tokens:
        yield (
            f"the tokens of the images and sounds end at {end}, the prompt has "
            f"{num_prompt_tokens} tokens"
        )


def _kind_faults(images: Sequence[MediaInput], info: EngineInfo) -> Iterator[str]:
    """Checks that the model has an encoder for each image and each sound."""
    kinds = {type(image) for image in images}
    if not info.has_encoder:
        yield "this model reads text only"
    elif ImageInput in kinds and not info.has_vision:
        yield "this model hears sounds, but sees no images"
    elif SoundInput in kinds and not info.has_hearing:
        yield "this model sees images, but hears no sounds"


def _content_faults(image: MediaInput, number: int) -> Iterator[str]:
    """Checks that the bytes of an image or a sound agree with its shape."""
    if isinstance(image, SoundInput):
        num_bytes = 4 * prod(image.shape)
        if len(image.features) != num_bytes or not image.num_frames > 0:
            yield (
                f"{_name(image, number)} must have {num_bytes} bytes of features and a frame, "
                f"given {len(image.features)} bytes and {image.num_frames} frames"
            )
    elif len(image.pixels) != 3 * prod(image.shape):
        yield (
            f"{_name(image, number)} must have 3 bytes for each pixel of {image.shape}, "
            f"given {len(image.pixels)}"
        )


def _name(image: MediaInput, number: int) -> str:
    """Names an image or a sound by its number among all images and sounds."""
    return f"sound {number}" if isinstance(image, SoundInput) else f"image {number}"


def _place_faults(image: MediaInput, number: int, first: int) -> Iterator[str]:
    """Checks the places of one image's tokens. `first` is the token after the image before."""
    if not image.runs or any(length < 1 for _, length in image.runs):
        yield f"{_name(image, number)} has no tokens"
    for begin, length in image.runs:
        if begin < first:
            yield f"the tokens of {_name(image, number)} must follow the tokens before it"
        first = begin + length
    grid = image.position_grid
    if grid is not None and (
        len(image.runs) != 1 or prod(grid) != image.runs[0][1] or min(grid) < 1
    ):
        yield f"the tokens of image {number} must be one run of {grid}, given {image.runs}"


def _goes_on(before: MediaInput | None, image: MediaInput) -> bool:
    """Tells whether two images can be successive frames of a video: adjacent and of one size."""
    if before is None or not before.runs or not image.runs:
        return False
    begin, length = before.runs[-1]
    has_size = image.position_grid is not None and image.position_grid == before.position_grid
    return has_size and begin + length == image.runs[0][0]


def _token_ids_in(request: EngineRequest) -> dict[str, Iterable[int]]:
    params, budget = request.params, request.reasoning_budget
    return {
        "the end of the reasoning": () if budget is None else budget.end_token_ids,
        "the prompt": request.prompt_token_ids,
        "logit_bias": [token_id for token_id, _ in params.logit_bias],
        "logprob_token_ids": params.logprob_token_ids,
        "stop_token_ids": params.stop_token_ids,
        "allowed_token_ids": params.allowed_token_ids,
        "bad_words": chain.from_iterable(params.bad_words),
    }


def _beam_search_faults(
    request: EngineRequest, params: BeamSearchParams, info: EngineInfo, blocks: BlockManager
) -> Iterator[str]:
    width, max_num_seqs = params.width, info.max_num_seqs
    if not request.n <= width <= max_num_seqs:
        yield (
            f"the number of beams must be from n ({request.n}) to max_num_seqs ({max_num_seqs}), "
            f"given {width}"
        )
    if params.num_groups < 1 or width % params.num_groups:
        yield (
            f"the number of beams must be a multiple of the number of groups "
            f"({params.num_groups}), given {width}"
        )
    num_prompt_tokens = len(request.prompt_token_ids)
    num_tokens = min(num_prompt_tokens + request.params.max_tokens, info.max_model_len)
    num_blocks = blocks.num_forked_blocks(num_prompt_tokens, num_tokens, width)
    if num_blocks > blocks.num_blocks:
        yield (
            f"{width} beams of {num_tokens} tokens need {num_blocks} KV blocks, "
            f"the cache has {blocks.num_blocks}"
        )
