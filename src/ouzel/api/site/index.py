"""The facts about the server for the JSON answer and the page."""

from collections.abc import Mapping, Sequence

import msgspec

from ouzel import __version__


class Index(msgspec.Struct):
    models: Sequence[str]
    # limit of the first model; None without a model
    max_model_len: int | None
    needs_api_key: bool
    keeps_conversations: bool
    max_file_bytes: int | None  # limit of one uploaded file; None: no files are stored
    max_body_bytes: int  # limit of the body of one request, with the files in it
    max_media_bytes: int  # limit of one picture, video or PDF of a message
    max_images: int  # limit of the pictures in one request; a page of a PDF is one
    max_videos: int  # limit of the videos in one request
    searches_files: bool  # the server has a model for the vectors of vector stores
    max_logprobs: int  # -1 stands for the whole vocabulary
    base_urls: Mapping[str, str]  # base URLs by the clients that use them
    openapi: str  # the path of the OpenAPI document
    server: str = "Ouzel"
    version: str = __version__
