"""Ouzel: a large-language-model server for ordinary CPUs."""

__version__ = "0.1.0"
