"""Cohere's answers say in `meta` what the request would cost there. Nothing is billed here; the counts are real."""

import msgspec
from msgspec import UNSET, UnsetType

_DOCUMENTS_PER_SEARCH = 100  # Cohere's unit of a search


class ApiVersion(msgspec.Struct):
    version: str


class BilledUnits(msgspec.Struct):
    input_tokens: int
    search_units: int | UnsetType = UNSET


class TokenCounts(msgspec.Struct):
    input_tokens: int
    output_tokens: int = 0


class CohereMeta(msgspec.Struct):
    api_version: ApiVersion
    billed_units: BilledUnits
    tokens: TokenCounts


def cohere_meta(version: str, num_tokens: int, *, num_documents: int | None = None) -> CohereMeta:
    """Counts a search among `num_documents`, if there is one: each piece of a long document is one of them."""
    searches = UNSET if num_documents is None else -(-num_documents // _DOCUMENTS_PER_SEARCH)
    return CohereMeta(
        ApiVersion(version), BilledUnits(num_tokens, searches), TokenCounts(num_tokens)
    )
