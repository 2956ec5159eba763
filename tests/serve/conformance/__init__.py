"""Tries each request parameter that OVMS's and LMI's documents list for chats and responses.

The demo models answer. `uv run python -m tests.serve.conformance` writes
docs/reference/conformance.md.

A parameter works where its effect is seen; a 200 alone is no proof.
"""
