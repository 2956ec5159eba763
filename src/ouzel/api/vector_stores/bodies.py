"""Defines the bodies of requests about vector stores."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.filters import Attribute
from ouzel.hosted_tools.file_search.indexing import Strategy
from ouzel.hosted_tools.file_search.ranking_fields import (
    DEFAULT_HITS,
    MAX_HITS,
    FilterFields,
    RankingFields,
)
from ouzel.hosted_tools.file_search.records import StaticChunking
from ouzel.wire.fields import Labels

MAX_FILES = 10_000  # one vector store has no more
MAX_BATCH = 2_000  # files of one request
_MAX_QUERY = 4096  # characters

Attributes = Annotated[
    dict[
        Annotated[str, Meta(max_length=64)],
        Annotated[str, Meta(max_length=512)] | float | bool,
    ],
    Meta(max_length=16, description="Values of a file, by which searches select files."),
]
FileIds = Annotated[list[str], Meta(max_length=MAX_BATCH, description="The ids of uploaded files.")]
Name = Annotated[str, Meta(max_length=256, description="The name of the vector store.")]


class StaticFields(msgspec.Struct, frozen=True, kw_only=True):
    max_chunk_size_tokens: Annotated[
        int, Meta(ge=100, le=4096, description="Most tokens of a chunk.")
    ] = 800
    chunk_overlap_tokens: Annotated[
        int, Meta(ge=0, le=2048, description="Tokens that a chunk repeats from the one before.")
    ] = 400


class ChunkingFields(msgspec.Struct, frozen=True, kw_only=True):
    type: Annotated[
        Literal["auto", "static"],
        Meta(description="auto: chunks end at headings and paragraphs; static: by their size."),
    ]
    static: Annotated[StaticFields | None, Meta(description="The sizes of the type static.")] = None

    def read(self, path: str) -> bytes:
        """Returns the strategy as it is stored. Raises InvalidRequest."""
        if self.type == "auto":
            return _AUTO
        sizes = self.static or StaticFields()
        if sizes.chunk_overlap_tokens * 2 > sizes.max_chunk_size_tokens:
            most = sizes.max_chunk_size_tokens // 2
            raise InvalidRequest(
                f"must be <= {most}, half of max_chunk_size_tokens, given "
                f"{sizes.chunk_overlap_tokens}",
                field=f"{path}.static.chunk_overlap_tokens",
            )
        static = StaticChunking(sizes.max_chunk_size_tokens, sizes.chunk_overlap_tokens)
        return msgspec.json.encode(Strategy("static", static))


_AUTO = msgspec.json.encode(Strategy())


class ExpiryFields(msgspec.Struct, frozen=True, kw_only=True):
    anchor: Annotated[Literal["last_active_at"], Meta(description="The time counts from here.")]
    days: Annotated[int, Meta(ge=1, le=365, description="Days after the last use.")]


class CreateVectorStore(msgspec.Struct, frozen=True, kw_only=True):
    name: Name | None = None
    description: Annotated[
        str | None, Meta(description="A text about the vector store, for people.")
    ] = None
    file_ids: FileIds | None = None
    chunking_strategy: Annotated[
        ChunkingFields | None, Meta(description="How the files are cut into chunks.")
    ] = None
    expires_after: Annotated[
        ExpiryFields | None, Meta(description="Deletes the contents when nobody used them.")
    ] = None
    metadata: Annotated[Labels | None, Meta(description="Labels of the vector store.")] = None


class ChangeVectorStore(msgspec.Struct, frozen=True, kw_only=True):
    name: Name | None = None
    expires_after: Annotated[
        ExpiryFields | None, Meta(description="Deletes the contents when nobody used them.")
    ] = None
    metadata: Annotated[Labels | None, Meta(description="Replaces the labels.")] = None


class AddFile(msgspec.Struct, frozen=True, kw_only=True):
    file_id: Annotated[str, Meta(description="The id of an uploaded file.")]
    attributes: Attributes | None = None
    chunking_strategy: Annotated[
        ChunkingFields | None, Meta(description="How the file is cut into chunks.")
    ] = None


class ChangeFile(msgspec.Struct, frozen=True, kw_only=True):
    attributes: Attributes | None = None


class AddFileBatch(msgspec.Struct, frozen=True, kw_only=True):
    file_ids: FileIds | None = None
    files: Annotated[
        Annotated[list[AddFile], Meta(max_length=MAX_BATCH)] | None,
        Meta(description="Files with attributes of their own, in place of file_ids."),
    ] = None
    attributes: Attributes | None = None
    chunking_strategy: Annotated[
        ChunkingFields | None, Meta(description="How the files of file_ids are cut.")
    ] = None

    def read_files(self) -> list[AddFile]:
        """Returns all files. Raises InvalidRequest."""
        if (self.file_ids is None) == (self.files is None):
            raise InvalidRequest("or files must be given, and not both", field="file_ids")
        if self.files is None:
            return [
                AddFile(
                    file_id=file_id,
                    attributes=self.attributes,
                    chunking_strategy=self.chunking_strategy,
                )
                for file_id in dict.fromkeys(self.file_ids or ())
            ]
        for field in ("attributes", "chunking_strategy"):
            if getattr(self, field) is not None:
                raise InvalidRequest("must be given for each of files", field=field)
        ids = [file.file_id for file in self.files]
        if len(set(ids)) < len(ids):
            raise InvalidRequest("must name each file once", field="files")
        return self.files


class SearchVectorStore(msgspec.Struct, frozen=True, kw_only=True):
    query: Annotated[
        Annotated[str, Meta(min_length=1, max_length=_MAX_QUERY)]
        | Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=_MAX_QUERY)]],
            Meta(min_length=1, max_length=16),
        ],
        Meta(description="A question, or several, and their results are joined."),
    ]
    filters: FilterFields = None
    max_num_results: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_HITS)] | None,
        Meta(description=f"Most results. Default: {DEFAULT_HITS}."),
    ] = None
    ranking_options: Annotated[
        RankingFields | None, Meta(description="How results are ranked.")
    ] = None
    rewrite_query: Annotated[
        bool | None, Meta(description="Must be false: questions are searched as they are.")
    ] = None


def write_attributes(attributes: dict[str, Attribute] | None) -> bytes:
    """Returns attributes as they are stored."""
    return msgspec.json.encode(attributes or {})
