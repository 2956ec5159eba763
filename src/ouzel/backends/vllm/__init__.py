"""Runs vLLM as an engine: in a child process (`child_engine`), or as a server elsewhere
(`remote_link`).

Written for vLLM 0.33. `sampling_fields` maps the fields of requests for both.
"""
