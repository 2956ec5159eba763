"""Requests at random over several models, their sending, and the checks of their answers."""
