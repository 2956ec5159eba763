"""Answers Ollama's clients as Ollama does: chats, prompts, and requests about models.

docs/reference/ollama.md describes the support of each field.
"""
