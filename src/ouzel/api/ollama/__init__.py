"""Ollama's clients are answered as Ollama answers: chats, prompts, and what they ask about models.

docs/reference/ollama.md says how each field is honoured.
"""
