"""Writes the completion scripts of shells from the tables of commands and options."""
