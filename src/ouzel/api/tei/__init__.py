"""Clients of Hugging Face's text-embeddings-inference (TEI) get TEI's answers: vectors, similarities, ranks.

docs/embeddings.md lists the fields. TEI's `/rerank` is also a path of other servers; the body tells whose client asks.
"""
