"""Writes the intermediate forms (literals, patterns, choices) as Lark text for llguidance."""
