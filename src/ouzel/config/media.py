"""What a request's pictures, videos and PDFs may be, and where they may come from."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ouzel.config.media_hosts import read_media_hosts
from ouzel.config.option import option


class MediaConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Pictures, videos and PDFs in requests"

    allowed_media_domains: Annotated[
        tuple[str, ...],
        option(
            "A host from which pictures may be downloaded, or HOST:PORT; all: every public host. Addresses that are "
            "not public need an entry of their own: an address, a network like 10.1.0.0/16, or localhost.",
            unset="none, and no picture is downloaded",
        ),
    ] = ()
    allowed_local_media_path: Annotated[
        str,
        option(
            "A directory whose pictures requests may name by their paths.",
            unset="none, and no file is read",
        ),
    ] = ""
    max_images: Annotated[
        int, Meta(ge=0, le=4096), option("Most pictures in one request; each page of a PDF is one.")
    ] = 16
    max_videos: Annotated[int, Meta(ge=0, le=4096), option("Most videos in one request.")] = 4
    max_video_frames: Annotated[
        int,
        Meta(ge=2, le=4096),
        option(
            "Most frames of a video that a model is shown; of a file so many are sampled, a longer list is a 400."
        ),
    ] = 32
    video_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("How long decoding a video may take.")
    ] = 30.0
    pdf_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("How long rendering a PDF's pages may take.")
    ] = 30.0
    max_media_bytes: Annotated[
        int,
        Meta(ge=1024, le=2**31 - 1),
        option("Longest file of a picture, a video or a PDF, wherever it comes from."),
    ] = 20 * 2**20
    max_media_bytes_total: Annotated[
        int,
        Meta(ge=1024),
        option(
            "Bytes of all pictures, as files and prepared, that the server holds at a time; one more is a 429."
        ),
    ] = 2**30
    max_media_pixels: Annotated[
        int,
        Meta(ge=1, le=5 * 10**8),
        option(
            "Most pixels of a picture, width times height; of a video of all frames that are decoded together."
        ),
    ] = 50_000_000
    media_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("How long the download of a picture may take.")
    ] = 10.0
    max_media_memory_bytes: Annotated[
        int,
        Meta(ge=1024),
        option(
            "Memory for decoding pictures (24 bytes a pixel), as much for videos, for PDFs; larger ones go alone."
        ),
    ] = 512 * 2**20

    def __post_init__(self) -> None:
        if self.allowed_media_domains:
            read_media_hosts(self.allowed_media_domains)
