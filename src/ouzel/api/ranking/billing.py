"""Writes `meta` of Cohere's answers: the cost of the request at Cohere.

Nothing is billed here, but the counts are real.
"""

import msgspec
from msgspec import UNSET, UnsetType

_DOCUMENTS_PER_SEARCH = 100  # the number of documents in one of Cohere's search units


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
    """Counts tokens, and searches if `num_documents` is given.

    Each piece of a document counts as one.
    """
    searches = UNSET if num_documents is None else -(-num_documents // _DOCUMENTS_PER_SEARCH)
    return CohereMeta(
        ApiVersion(version), BilledUnits(num_tokens, searches), TokenCounts(num_tokens)
    )
