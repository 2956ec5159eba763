"""Reads and answers /v1/messages as Anthropic's API does, for Claude Code and the `anthropic`
packages.

docs/reference/anthropic.md describes the support of each field.
"""
