"""Serves the API of Hugging Face's text-embeddings-inference (TEI): vectors, similarities, ranks.

docs/how-to/embeddings.md lists the fields. Other servers have a `/rerank` too; the fields of the
body show which API a request uses.
"""
