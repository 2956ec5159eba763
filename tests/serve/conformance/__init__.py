"""Every request parameter that the documents of OpenVINO Model Server and LMI list for chat completions and responses,
tried on the demo models. Writes docs/reference/conformance.md: `uv run python -m tests.serve.conformance`.

A parameter works where its effect is seen; a 200 alone is no proof.
"""
