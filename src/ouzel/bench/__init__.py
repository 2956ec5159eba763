"""Measures how fast an OpenAI-compatible API answers, and reports the figures."""
