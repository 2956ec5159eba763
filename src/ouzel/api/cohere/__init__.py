"""Embeddings in the form of Cohere's API; reranking in Cohere's form is in `api/ranking`, beside other forms.

docs/embeddings.md lists the fields.
"""
