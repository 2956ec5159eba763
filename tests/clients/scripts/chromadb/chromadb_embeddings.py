"""Stores documents in chromadb and finds them by the server's vectors.

Usage: `python chromadb_embeddings.py ROOT`.
"""

import sys
from typing import Any  # chromadb's embedding functions have types of their own

import chromadb
from chromadb.utils.embedding_functions import OllamaEmbeddingFunction, OpenAIEmbeddingFunction

DOCUMENTS = ["the sea", "a desk"]
ROOT = sys.argv[1]


def finds_each_document(name: str, embed: Any) -> None:
    collection = chromadb.EphemeralClient().create_collection(name, embedding_function=embed)
    collection.add(ids=["0", "1"], documents=DOCUMENTS)
    found = collection.query(query_texts=DOCUMENTS, n_results=1)
    assert found["documents"] == [[document] for document in DOCUMENTS], found


if __name__ == "__main__":
    openai = OpenAIEmbeddingFunction(model_name="ouzel", api_base=f"{ROOT}/v1", api_key="none")
    finds_each_document("openai", openai)
    finds_each_document("ollama", OllamaEmbeddingFunction(model_name="ouzel", url=ROOT))
