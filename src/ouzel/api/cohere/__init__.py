"""Embeddings in the form of Cohere's API; reranking in Cohere's form is in `api/ranking`, beside other forms.

docs/how-to/embeddings.md lists the fields.
"""
