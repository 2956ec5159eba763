"""Shells complete commands, flags and values by scripts that are written from the tables of commands and options."""
