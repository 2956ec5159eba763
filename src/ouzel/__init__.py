"""Ouzel: a large-language-model server for ordinary CPUs."""

__version__ = "0.2.0"
