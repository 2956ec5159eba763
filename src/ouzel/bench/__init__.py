"""Measures how fast an OpenAI-compatible API answers: prompts, arrivals, times, figures and their report."""
