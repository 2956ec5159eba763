"""This package turns grammar texts into token masks with llguidance, in the engine's process only."""
