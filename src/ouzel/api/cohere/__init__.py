"""Cohere's clients get vectors in Cohere's form; its reranking is in `api/ranking`, which shares it with others.

docs/embeddings.md lists the fields.
"""
