"""Defines the options of pictures, videos, PDFs and sounds in requests: sources and limits."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ouzel.config.media_hosts import read_media_hosts
from ouzel.config.option import option


class MediaConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Pictures, videos, PDFs and sounds in requests"

    allowed_media_domains: Annotated[
        tuple[str, ...],
        option(
            "A host, or HOST:PORT, from which pictures may be downloaded; all: every public host. "
            "Addresses that are not public need an entry of their own: an address, a network like "
            "10.1.0.0/16, or localhost.",
            unset="none: no picture is downloaded",
        ),
    ] = ()
    allowed_local_media_path: Annotated[
        str,
        option(
            "A directory whose pictures requests may name by path.",
            unset="none: no file is read",
        ),
    ] = ""
    max_images: Annotated[
        int, Meta(ge=0, le=4096), option("Most pictures in one request; a page of a PDF is one.")
    ] = 16
    max_videos: Annotated[int, Meta(ge=0, le=4096), option("Most videos in one request.")] = 4
    max_sounds: Annotated[
        int, Meta(ge=0, le=4096), option("Most sounds in one request, for models that hear.")
    ] = 8
    max_video_frames: Annotated[
        int,
        Meta(ge=2, le=4096),
        option(
            "Most frames of a video that the model reads: so many are sampled from a file; a "
            "longer list of frames is a 400."
        ),
    ] = 32
    video_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time to decode a video.")
    ] = 30.0
    pdf_timeout_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("Longest time to render a PDF, or read all texts."),
    ] = 30.0
    max_media_bytes: Annotated[
        int,
        Meta(ge=1024, le=2**31 - 1),
        option("Largest file of a picture, a video, a PDF or a sound, from any source."),
    ] = 20 * 2**20
    max_media_bytes_total: Annotated[
        int,
        Meta(ge=1024),
        option(
            "Limit of all media in memory, as files and prepared, in bytes; one more gets a 429."
        ),
    ] = 2**30
    max_media_pixels: Annotated[
        int,
        Meta(ge=1, le=5 * 10**8),
        option(
            "Largest number of pixels of a picture, or of all decoded frames of a video together."
        ),
    ] = 50_000_000
    media_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time to download a picture.")
    ] = 10.0
    max_media_memory_bytes: Annotated[
        int,
        Meta(ge=1024),
        option(
            "Memory for decoding pictures (24 bytes a pixel), as much for videos and as much for "
            "PDFs; a larger one is decoded alone."
        ),
    ] = 512 * 2**20

    def __post_init__(self) -> None:
        if self.allowed_media_domains:
            read_media_hosts(self.allowed_media_domains)
