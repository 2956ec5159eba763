"""Prepares sounds as the models that hear were trained: one file for each family."""
