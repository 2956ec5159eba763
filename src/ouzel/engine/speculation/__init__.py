"""Proposes tokens that may come next; `rules` decides how many pay, without engines."""
