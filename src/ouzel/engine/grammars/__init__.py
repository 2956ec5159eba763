"""Compiles grammar texts and makes token masks with llguidance, in the engine's process only."""
