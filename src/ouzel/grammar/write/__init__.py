"""This package writes what was read, literals, patterns and choices, as Lark text for llguidance."""
