"""Measures the error of real models' answers for each width, precision and cache type."""
