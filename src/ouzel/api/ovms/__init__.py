"""Serves the paths, fields and errors of OpenVINO Model Server (OVMS) that OpenAI's API lacks.

OVMS's health and status paths are always served, the rest with `--profile ovms`.
docs/reference/ovms.md describes the support of each field.
"""
