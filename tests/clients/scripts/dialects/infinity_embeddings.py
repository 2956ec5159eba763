"""Embeds texts and ranks documents with infinity's client.

Usage: `python infinity_embeddings.py ROOT`.
"""

import sys

from infinity_client import Client
from infinity_client.api.default import embeddings, rerank
from infinity_client.models import (
    OpenAIEmbeddingInputText,
    OpenAIEmbeddingResult,
    RerankInput,
    ReRankResult,
)

DOCUMENTS = ["the sea", "a desk"]
client = Client(base_url=sys.argv[1])
ranked = rerank.sync(
    client=client, body=RerankInput(query="fish", documents=DOCUMENTS, return_documents=True)
)
assert isinstance(ranked, ReRankResult)
assert {result.document for result in ranked.results} == set(DOCUMENTS)
embedded = embeddings.sync(client=client, body=OpenAIEmbeddingInputText(input_=DOCUMENTS))
assert isinstance(embedded, OpenAIEmbeddingResult)
assert len(embedded.data) == len(DOCUMENTS) and embedded.usage.prompt_tokens > 0
