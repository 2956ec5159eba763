"""Provides clients of an OpenAI-compatible API, over HTTP or to an app in this process."""
