"""Embeds texts and ranks documents with Cohere's clients of both API versions.

Usage: `python cohere_embeddings.py ROOT`.
"""

import sys

import cohere

TEXTS = ["the sea", "a river", "a desk"]
newer = cohere.ClientV2(api_key="none", base_url=sys.argv[1])
older = cohere.Client(api_key="none", base_url=sys.argv[1])


def embeds() -> None:
    by_type = newer.embed(
        model="ouzel",
        texts=TEXTS,
        input_type="search_document",
        embedding_types=["float", "ubinary", "base64"],
    )
    floats, bits = by_type.embeddings.float_, by_type.embeddings.ubinary
    assert floats is not None and bits is not None
    assert len(floats) == len(bits) == len(TEXTS) and len(floats[0]) == 8 * len(bits[0])
    queries = newer.embed(
        model="ouzel", texts=TEXTS, input_type="search_query", embedding_types=["float"]
    )
    assert queries.embeddings.float_ is not None
    assert by_type.meta is not None and by_type.meta.billed_units is not None
    assert (by_type.meta.billed_units.input_tokens or 0) > 0
    plain = older.embed(model="ouzel", texts=TEXTS, input_type="search_document")
    assert plain.response_type == "embeddings_floats" and len(plain.embeddings) == len(TEXTS)
    assert plain.embeddings[0] == floats[0]


def ranks() -> None:
    ranked = newer.rerank(
        model="ouzel", query="fish", documents=TEXTS, top_n=2, max_tokens_per_doc=100
    )
    assert (
        len(ranked.results) == 2
        and ranked.results[0].relevance_score >= ranked.results[1].relevance_score
    )
    assert ranked.meta is not None and ranked.meta.billed_units is not None
    assert ranked.meta.billed_units.search_units == 1
    shown = older.rerank(model="ouzel", query="fish", documents=TEXTS, return_documents=True)
    assert {result.document.text for result in shown.results if result.document is not None} == set(
        TEXTS
    )


def is_refused() -> None:
    try:
        newer.embed(model="ouzel", texts=TEXTS, input_type="image")
    except cohere.BadRequestError as error:
        assert "input_type must be one of" in error.body["message"]
    else:
        raise AssertionError("pictures were embedded")


for step in (embeds, ranks, is_refused):
    step()
