"""Clients of OVMS (OpenVINO Model Server) ask for some things, and read some, that are not OpenAI's.

The paths of its health checks and its status are always there, the rest with `--profile ovms`. docs/ovms.md says how
each field is honoured.
"""
