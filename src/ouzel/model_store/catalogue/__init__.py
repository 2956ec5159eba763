"""Short names of well-known models: the catalogue, sizes, and where each model comes from."""
