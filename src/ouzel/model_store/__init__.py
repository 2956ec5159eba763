"""What models are on this disk: downloads into the hub's cache, and what was made of models, in ours."""
