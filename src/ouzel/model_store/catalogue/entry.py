"""Defines the records of the catalogue, which `reader` fills from a JSON file."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Use = Literal["chat", "code", "vision", "embed", "rerank", "base"]
SamplingField = Literal["temperature", "top_p", "top_k", "min_p", "repetition_penalty"]
Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
ShortName = Annotated[
    str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}(:[a-z0-9][a-z0-9._-]{0,63})?$")
]
# Every step of the path begins with a letter or digit, so none leads upwards.
RelativePath = Annotated[str, Meta(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$", max_length=255)]


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of a config.json that decide the size of a model."""

    hidden: Positive
    layers: Positive
    feed_forward: Positive  # width of the feed-forward layer, or of one expert
    heads: Positive
    kv_heads: Positive
    head_size: Positive
    vocabulary: Positive
    tied: bool = True  # the embedding is also the matrix of the logits, or there are no logits
    experts: Count = 0  # experts of each layer; 0: one feed-forward layer
    expert_bits: float | None = (
        None  # bits of a weight of the experts, if they are stored quantised
    )
    feed_forward_matrices: Annotated[int, Meta(ge=2, le=3)] = 3  # 2: a layer without a gate
    encoder: bool = False  # the model reads whole texts, without a KV cache
    positions: Count = 0  # rows of the table of positions that encoders have
    vision_parameters: Count = 0  # parameters of the vision encoder and its projection


class PackagedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a model directory, in one or more parts that Python packages carry."""

    name: RelativePath
    parts: Annotated[tuple[RelativePath, ...], Meta(min_length=1)]  # paths in the packages
    size_bytes: Positive
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class PackageSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Python packages that carry the files of a model."""

    requirements: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.-]*==\d[\w.]*$")], ...],
        Meta(min_length=1),
    ]
    download_bytes: Positive
    files: Annotated[tuple[PackagedFile, ...], Meta(min_length=1)]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of the catalogue."""

    name: ShortName
    uses: Annotated[tuple[Use, ...], Meta(min_length=1)]
    licence: str
    parameters: Positive
    context: Positive
    shape: Shape
    # owner/name on the hub; empty if only packages carry the model
    repository: Annotated[str, Meta(pattern=r"^([\w.-]+/[\w.-]+)?$")] = ""
    revision: Annotated[str, Meta(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$")] = "main"
    format: Literal["safetensors", "gguf"] = "safetensors"
    # the quantisation or the file of a GGUF repository
    file: Annotated[str, Meta(pattern=r"^(\w[\w.-]*(/\w[\w.-]*)*)?$", max_length=255)] = ""
    gated: bool = False  # the hub gives the files only to users who accepted the licence
    stored_bits: Positive = 16  # bits of a weight in the files of safetensors
    download_bytes: Count = 0  # size of the files on the hub; 0: parameters times stored bits
    serve_options: str = ""  # options of `ouzel serve` that the model needs
    # fields of a chat's requests that `ouzel run` sends, unless the user sets them
    sampling: dict[SamplingField, float] = {}
    packages: PackageSource | None = None

    @property
    def repository_model(self) -> str:
        """Returns MODEL in the form that names the repository: owner/name, or owner/name:FILE."""
        return f"{self.repository}:{self.file}" if self.file else self.repository


class CatalogueFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    models: tuple[Entry, ...]
