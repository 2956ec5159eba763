"""Serves embeddings in the form of Cohere's API. `api/ranking` serves Cohere's reranking.

docs/how-to/embeddings.md lists the fields.
"""
