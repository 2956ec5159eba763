"""Builds draft heads: layers of another checkpoint that draft from the hidden rows of a model."""
