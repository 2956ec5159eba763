"""The facts about the server for the JSON answer and the page."""

from collections.abc import Mapping, Sequence

import msgspec

from ouzel import __version__


class Index(msgspec.Struct):
    models: Sequence[str]
    demo_models: Sequence[str]  # names of the small models in the package of Ouzel
    # limit of the first model; None without a model
    max_model_len: int | None
    needs_api_key: bool
    keeps_conversations: bool
    max_file_bytes: int | None  # limit of one uploaded file; None: no files are stored
    max_body_bytes: int  # limit of the body of one request, with the files in it
    max_media_bytes: int  # limit of one picture, video or PDF of a message
    max_images: int  # limit of the pictures in one request; a page of a PDF is one
    max_videos: int  # limit of the videos in one request
    max_audio_file_bytes: int | None  # limit of one sound file; None: speech is not served
    searches_files: bool  # the server has a model for the vectors of vector stores
    # clients may name MCP servers by their URLs
    takes_mcp_urls: bool
    # the holder of the admin key can load, unload, download and delete models
    has_admin_key: bool
    models_memory_bytes: int | None  # limit of the models in memory together; None: no limit
    max_logprobs: int  # -1 stands for the whole vocabulary
    base_urls: Mapping[str, str]  # base URLs by the clients that use them
    openapi: str  # the path of the OpenAPI document
    server: str = "Ouzel"
    version: str = __version__
