"""Makes the report of a benchmark: one HTML page without scripts that needs no network."""
