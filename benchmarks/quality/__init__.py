"""The quality bench: how far the answers of real models move with each width, precision and cache
type.
"""
