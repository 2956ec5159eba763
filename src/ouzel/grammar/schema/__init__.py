"""Turns a client's JSON schema so that the grammar engine honours it in full, or refuses it."""
