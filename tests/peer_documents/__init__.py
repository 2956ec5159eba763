"""Sends the requests, snippets and examples of the peers' own documents to our server.

`facts/` holds a copy of the documents' facts; `uv run python -m tests.peer_documents` renews it.
"""
