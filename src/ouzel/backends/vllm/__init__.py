"""vLLM as an engine: in a child process of its own interpreter (`child_engine`), or a server elsewhere (`remote_link`).

Written for vLLM 0.33; `sampling_fields` holds the map of fields that both have in common.
"""
