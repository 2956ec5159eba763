"""Takes the pictures of the README and the documents from the real programs."""
