"""Builds assistants: checkpoints that draft with the hidden rows, keys and values of a model."""
