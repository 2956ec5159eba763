"""/v1/messages reads and answers as Anthropic's API does, for Claude Code and the `anthropic` packages.

docs/reference/anthropic.md says how each field is honoured.
"""
