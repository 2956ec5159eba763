"""The requests, snippets, examples and tables of the peers' own documents, and tests that send them to our server.

`facts/` holds a copy of the facts; `uv run python -m tests.peer_documents` renews it from the documents.
"""
